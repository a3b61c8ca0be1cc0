/** The pages to test, as the running program lists them: no spec names a tenant's pages itself. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { repository, routesFile, site } from './environment.ts';

/** One line of `rowhouse routes --format json`. */
export interface Route {
  /** Host name, without a port. */
  host: string;
  /** Path from the host's root. */
  path: string;
  /** The tenant's id. */
  tenant: string;
  /** The file behind it, from the tenant's folder. */
  file: string;
  kind: string;
  /** Whether this is the one address that the page's other addresses name. */
  canonical: boolean;
}

/** Every address of every page. Hosts of a tenant's own (`hosts:`) do not resolve here and are left to the Rust tests. */
export const pages: readonly Route[] = read().filter(
  ({ host, kind }) => kind === 'page' && (host === site.hostname || host.endsWith(`.${site.hostname}`)),
);

/** Each page once. */
export const canonicalPages: readonly Route[] = pages.filter(({ canonical }) => canonical);

/**
 * One page of each kind: of those of a tenant that lie in one folder and have the same layout and the same kinds of
 * section. What depends on how a page is made up is looked at on these alone.
 */
export const samples: readonly Route[] = [
  ...new Map([...canonicalPages].reverse().map((route) => [makeup(route), route])).values(),
];

/** The address of a page, on the program under test or on another one. */
export function address({ host, path }: Route, program: URL = site): string {
  const url = new URL(path, program);
  url.hostname = host;
  return url.href;
}

/** Names a page in a test's title. */
export function label({ host, path }: Route): string {
  return `${host}${path}`;
}

/** What a page's kind is told by: its tenant, its folder, and what its front matter names. */
function makeup({ tenant, file }: Route): string {
  const [, front = ''] = readFileSync(join(repository, file), 'utf8').split(/^---$/m);
  const named = front.match(/\b(?:layout|kind): *[\w-]+/g) ?? [];
  return [tenant, dirname(file), ...new Set(named)].join(' ');
}

function read(): Route[] {
  const routes: unknown = JSON.parse(readFileSync(routesFile, 'utf8'));
  if (!Array.isArray(routes)) throw new Error(`\`${routesFile}\` holds no list of routes`);
  return routes.filter(isRoute);
}

/** Assets have no file of a tenant's own, so a line that lacks something is passed over, not refused. */
function isRoute(value: unknown): value is Route {
  if (typeof value !== 'object' || value === null) return false;
  const line: Partial<Record<keyof Route, unknown>> = value;
  const words: (keyof Route)[] = ['host', 'path', 'tenant', 'file', 'kind'];
  return words.every((word) => typeof line[word] === 'string') && typeof line.canonical === 'boolean';
}
