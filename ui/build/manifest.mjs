/** Makes the manifest from the islands' contracts and esbuild's list of outputs. The engine reads the bundle by it. */
import { createRequire } from 'node:module';

/** Returns the manifest, a plain object with its keys in a fixed order. */
export function manifest(islands, { outputs }, mode) {
  const find = (source) => {
    const path = source.replace('./', '');
    const [file] = [...outputs].find(([, output]) => output.entryPoint === path);
    return { file, imports: staticImports(file, outputs) };
  };
  return {
    react: createRequire(import.meta.url)('react/package.json').version,
    mode,
    runtime: find('./runtime/mount.tsx'),
    islands: Object.fromEntries(
      islands.map(({ name, source, server, schema }) => [name, { ...find(source), server, props: schema }]),
    ),
  };
}

/** Returns all files that the browser fetches before it runs `file`, to be preloaded with it. */
function staticImports(file, outputs) {
  const seen = new Set();
  const visit = (name) => {
    for (const { path, kind } of outputs.get(name).imports) {
      const next = path.split('/').pop();
      if (kind !== 'import-statement' || seen.has(next)) continue;
      seen.add(next);
      visit(next);
    }
  };
  visit(file);
  return [...seen].sort();
}
