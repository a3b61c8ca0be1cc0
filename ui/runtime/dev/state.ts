/** What the server's events say, and which of it concerns a page. Pure; runs in the browser, with `--dev` only. */

/** One thing that is wrong, as `rowhouse check --format json` writes it. */
export interface Diagnostic {
  file: string;
  /** From 1, like `column`. */
  line?: number;
  column?: number;
  /** How many characters are meant. */
  length?: number;
  code?: string;
  message: string;
  hint?: string;
  /** The line as it stands in the file. */
  text?: string;
}

/** The state of everything, sent on connecting and after each change. */
export interface State {
  /** What concerns every page. */
  everyone: Diagnostic[];
  /** What concerns the pages of one tenant, by its id. */
  tenants: Record<string, Diagnostic[]>;
}

export function errorsFor(tenant: string, state: State): Diagnostic[] {
  return [...state.everyone, ...(state.tenants[tenant] ?? [])];
}

/** `tenants/app/pages/index.md:3:1`, as editors and terminals open it. */
export function placeOf({ file, line, column }: Diagnostic): string {
  return [file, line, column].filter((part) => part !== undefined).join(':');
}

/** A line in three parts: before, what is meant, after. `undefined` for a text that is no line of the file. */
export function marked({ text, column, length = 1 }: Diagnostic): [string, string, string] | undefined {
  if (text === undefined || column === undefined) return undefined;
  // Columns count characters, which are not JavaScript's units.
  const characters = [...text];
  const start = Math.min(column - 1, characters.length);
  const part = (from: number, to?: number) => characters.slice(from, to).join('');
  return [part(0, start), part(start, start + length) || ' ', part(start + length)];
}
