/** The pages to test, from the running program: no spec names a tenant's pages itself. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { repository, routesFile, site } from './environment.ts';

/** A line of `rowhouse routes --format json`. */
export interface Route {
  /** Host name, without a port. */
  host: string;
  /** Path from the host's root. */
  path: string;
  /** The tenant's id. */
  tenant: string;
  /** The path of the file in the tenant's folder. */
  file: string;
  kind: string;
  /** Whether this is the page's canonical address. */
  canonical: boolean;
}

/** Every address of every page. Hosts of a tenant (`hosts:`) do not resolve here; the Rust tests cover them. */
export const pages: readonly Route[] = read().filter(
  ({ host, kind }) => kind === 'page' && (host === site.hostname || host.endsWith(`.${site.hostname}`)),
);

/** Each page once. */
export const canonicalPages: readonly Route[] = pages.filter(({ canonical }) => canonical);

/**
 * One page of each kind. Pages of a kind share tenant, folder, layout and section types. Tests of a page's structure
 * use only these.
 */
export const samples: readonly Route[] = [
  ...new Map([...canonicalPages].reverse().map((route) => [makeup(route), route])).values(),
];

/** Returns the address of a page, on the program under test or on another one. */
export function address({ host, path }: Route, program: URL = site): string {
  const url = new URL(path, program);
  url.hostname = host;
  return url.href;
}

/** Returns the name of a page for the title of a test. */
export function label({ host, path }: Route): string {
  return `${host}${path}`;
}

/** Returns the kind of a page: its tenant, its folder, and the layout and section types of its front matter. */
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

/** Assets have no file of a tenant, so incomplete lines are skipped. */
function isRoute(value: unknown): value is Route {
  if (typeof value !== 'object' || value === null) return false;
  const line: Partial<Record<keyof Route, unknown>> = value;
  const words: (keyof Route)[] = ['host', 'path', 'tenant', 'file', 'kind'];
  return words.every((word) => typeof line[word] === 'string') && typeof line.canonical === 'boolean';
}
