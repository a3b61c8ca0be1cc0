/** The content of the server's events, and its selection for a page. Pure; runs in the browser, with `--dev` only. */

/** A diagnostic, as `rowhouse check --format json` writes it. */
export interface Diagnostic {
  file: string;
  /** Line number from 1. `column` also counts from 1. */
  line?: number;
  column?: number;
  /** Number of marked characters. */
  length?: number;
  code?: string;
  message: string;
  hint?: string;
  /** The line in the file. */
  text?: string;
}

/** The state of all tenants, sent on connecting and after each change. */
export interface DeploymentDiagnostics {
  /** Diagnostics that concern every page. */
  everyone: Diagnostic[];
  /** Diagnostics of each tenant, by its id. */
  tenants: Record<string, Diagnostic[]>;
}

export function errorsFor(tenant: string, state: DeploymentDiagnostics): Diagnostic[] {
  return [...state.everyone, ...(state.tenants[tenant] ?? [])];
}

/** Returns the place as editors and terminals open it: `tenants/app/pages/index.md:3:1`. */
export function placeOf({ file, line, column }: Diagnostic): string {
  return [file, line, column].filter((part) => part !== undefined).join(':');
}

/**
 * Splits a line into the text before, within and after the marked part. `undefined` for a text that is not a line
 * of the file.
 */
export function marked({ text, column, length = 1 }: Diagnostic): [string, string, string] | undefined {
  if (text === undefined || column === undefined) return undefined;
  // Columns count characters, not UTF-16 code units.
  const characters = [...text];
  const start = Math.min(column - 1, characters.length);
  const part = (from: number, to?: number) => characters.slice(from, to).join('');
  return [part(0, start), part(start, start + length) || ' ', part(start + length)];
}

/** Says why visitors do not see the page: by the attributes `data-draft`, `data-scheduled` and `data-expired` of the script. */
export function hiddenReason(data: DOMStringMap): string | undefined {
  if (data.draft !== undefined) return 'Draft';
  if (data.scheduled) return `Scheduled for ${minute(data.scheduled)}`;
  if (data.expired) return `Expired at ${minute(data.expired)}`;
  return undefined;
}

/** Returns a time without its seconds: `2026-12-01 15:00 UTC`. */
function minute(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`;
}
