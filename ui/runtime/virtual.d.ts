/** Names that the build defines: see build/bundle.mjs. */

/** Whether the bundle was made with `--dev`. */
declare const DEV: boolean;

/** The path of the module of `mount.tsx`, relative to the modules of islands. */
declare const RUNTIME: string;

/** The path of the module of `when.ts`, relative to the modules of islands. */
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
