/** Names that the build provides: see build/bundle.mjs. */

/** True in a bundle made with `--dev`. */
declare const DEV: boolean;

/** Where the loader finds `mount.tsx`, relative to the modules of islands. */
declare const RUNTIME: string;

/** Where it finds `when.ts`, likewise. */
declare const WHEN: string;

declare module '#react-server' {
  export { renderToStaticMarkup, renderToString } from 'react-dom/server';
}

declare module '#islands' {
  import type { FunctionComponent } from 'react';

  const islands: Record<string, FunctionComponent<object>>;
  export = islands;
}

declare module '*.css' {
  const text: string;
  export default text;
}
