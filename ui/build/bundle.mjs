/** The esbuild calls: modules for the browser, the loader, one script for QuickJS, one for `rowhouse serve --dev`. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { build } from 'esbuild';
import { BuildError } from './error.mjs';
import { root } from './islands.mjs';

const common = (mode) => ({
  absWorkingDir: root,
  bundle: true,
  write: false,
  charset: 'utf8',
  jsx: 'automatic',
  define: { 'process.env.NODE_ENV': JSON.stringify(mode), DEV: String(mode === 'development') },
  logLevel: 'warning',
});

/** What the loader fetches: React with what mounts an island, and the policies that few pages need. */
const MOUNT = './runtime/mount.tsx';
const WHEN = './runtime/when.ts';

/** The browser's modules: `files` (name to bytes) and esbuild's `outputs`, keyed by file name; and the `loader`. */
export async function bundleClient(islands, mode) {
  const entries = Object.fromEntries(islands.map((island) => [island.name, island.source]));
  const modules = await clientModules({ runtime: MOUNT, when: WHEN, ...entries }, mode, {
    // Chromium then compiles them while they arrive (V8's explicit compile hints): starting React blocks the page half
    // as long.
    banner: { js: '//# allFunctionsCalledOnLoad' },
  });
  const find = (source) => {
    const [file] = [...modules.outputs].find(([, output]) => `./${output.entryPoint}` === source);
    return file;
  };
  return { ...modules, loader: await bundleLoader(find(MOUNT), find(WHEN), mode) };
}

/** The loader, as bytes: by itself, since it stands in the pages. */
async function bundleLoader(runtime, when, mode) {
  const { outputFiles } = await build({
    ...common(mode),
    entryPoints: ['./runtime/loader.ts'],
    outfile: 'loader.js',
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    minify: mode === 'production',
    define: { ...common(mode).define, RUNTIME: JSON.stringify(runtime), WHEN: JSON.stringify(when) },
  });
  const [{ contents, text }] = outputFiles;
  // It would end the element that it stands in (WHATWG HTML, restrictions for contents of script elements).
  if (/<\/script|<script|<!--/i.test(text)) {
    throw new BuildError('the loader holds `<script`, `</script` or `<!--`, which no inline script may');
  }
  return contents;
}

async function clientModules(entryPoints, mode, more) {
  const { outputFiles, metafile } = await build({
    ...common(mode),
    entryPoints,
    outdir: 'client',
    entryNames: '[name].[hash]',
    chunkNames: '[name].[hash]',
    format: 'esm',
    splitting: true,
    platform: 'browser',
    target: 'es2022',
    minify: mode === 'production',
    metafile: true,
    ...more,
  });
  const outputs = Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]);
  refuseSchemas(outputs);
  return {
    files: new Map(outputFiles.map((file) => [basename(file.path), file.contents])),
    outputs: new Map(outputs),
  };
}

/** Visitors must not pay for the schema library, so a component may import only types from a `props.ts`. */
function refuseSchemas(outputs) {
  for (const [, output] of outputs) {
    const strays = Object.keys(output.inputs).filter((input) => input.includes('node_modules/typebox/'));
    if (strays.length > 0) {
      throw new BuildError(
        `the schema library reached the browser through \`${output.entryPoint ?? 'a shared module'}\`: import only types from props.ts`,
      );
    }
  }
}

/** The script for QuickJS, as bytes. Islands that only the browser renders are left out. */
export async function bundleServer(islands, mode) {
  const rendered = islands.filter((island) => island.server);
  const { outputFiles } = await build({
    ...common(mode),
    entryPoints: ['./runtime/server.ts'],
    outfile: 'server.js',
    format: 'iife',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['browser'],
    target: 'es2020',
    plugins: [serverModules(rendered, legacyServer(mode))],
  });
  return outputFiles[0].contents;
}

/** The script that keeps an open page as its files are, as bytes: by itself, since visitors never get it. */
export const bundleDev = (mode) => bundleApart('dev', mode);

/** The script of the console, as bytes: by itself, since visitors never get it. */
export const bundleConsole = (mode) => bundleApart('console', mode);

async function bundleApart(name, mode) {
  const { outputFiles } = await build({
    ...common(mode),
    entryPoints: [`./runtime/${name}/index.ts`],
    outfile: `${name}.js`,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    minify: mode === 'production',
    loader: { '.css': 'text' },
  });
  return outputFiles[0].contents;
}

/** Resolves the two names that `runtime/server.ts` imports and that no package offers. */
function serverModules(islands, reactServer) {
  return {
    name: 'server-modules',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^#react-server$/ }, () => ({ path: reactServer }));
      onResolve({ filter: /^#islands$/ }, () => ({ path: 'islands', namespace: 'generated' }));
      onLoad({ filter: /.*/, namespace: 'generated' }, () => ({
        contents: islands
          .map(({ name, source }) => `export { default as ${name} } from '${source}';`)
          .join('\n'),
        resolveDir: root,
      }));
    },
  };
}

/**
 * React's string renderer. This build alone needs nothing that QuickJS lacks; react-dom ships it without listing
 * it among its public entries, hence the exact version in package.json and the check here.
 */
function legacyServer(mode) {
  const require = createRequire(import.meta.url);
  const reactDom = dirname(require.resolve('react-dom/package.json'));
  const file = join(reactDom, 'cjs', `react-dom-server-legacy.browser.${mode}.js`);
  if (!existsSync(file)) {
    const { version } = require('react-dom/package.json');
    throw new BuildError(
      `react-dom ${version} has no \`cjs/${basename(file)}\`: pin react and react-dom to a version that has it`,
    );
  }
  return file;
}
