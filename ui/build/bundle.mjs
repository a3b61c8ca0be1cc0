/**
 * The esbuild calls: modules for the browser, the loader, the script for QuickJS, and the scripts of `serve --dev`
 * and of the console.
 */
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

/**
 * The modules that the loader fetches: React with the code that mounts islands, and the policies that few pages
 * need.
 */
const MOUNT = './runtime/mount.tsx';
const WHEN = './runtime/when.ts';

/**
 * Builds the browser's modules. Returns `files` (name to bytes), esbuild's `outputs` by file name, and the
 * `loader`.
 */
export async function bundleClient(islands, mode) {
  const entries = Object.fromEntries(islands.map((island) => [island.name, island.source]));
  const modules = await clientModules({ runtime: MOUNT, when: WHEN, ...entries }, mode, {
    // With this hint Chromium compiles the modules while they download (V8's explicit compile hints). Starting
    // React then blocks the page half as long.
    banner: { js: '//# allFunctionsCalledOnLoad' },
  });
  const find = (source) => {
    const [file] = [...modules.outputs].find(([, output]) => `./${output.entryPoint}` === source);
    return file;
  };
  return { ...modules, loader: await bundleLoader(find(MOUNT), find(WHEN), mode) };
}

/** Builds the loader and returns its bytes. It is built separately, since pages contain it inline. */
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
  // These texts would end the script element or change its parsing (WHATWG HTML, restrictions for contents of
  // script elements).
  if (/<\/script|<script|<!--/i.test(text)) {
    throw new BuildError('the loader contains `<script`, `</script` or `<!--`, but inline scripts must not');
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

/**
 * Refuses the schema library in the browser's modules: visitors must not download it, so a component may import
 * only types from a `props.ts`.
 */
function refuseSchemas(outputs) {
  for (const [, output] of outputs) {
    const strays = Object.keys(output.inputs).filter((input) => input.includes('node_modules/typebox/'));
    if (strays.length > 0) {
      throw new BuildError(
        `the browser would load the schema library through \`${output.entryPoint ?? 'a shared module'}\`: import only types from props.ts`,
      );
    }
  }
}

/** Builds the script for QuickJS and returns its bytes. Islands that render only in the browser are left out. */
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

/** Builds the script of `serve --dev` and returns its bytes. It is built separately, since visitors never get it. */
export const bundleDev = (mode) => bundleScript('dev', mode);

/** Builds the script of the console and returns its bytes. It is built separately, since visitors never get it. */
export const bundleConsole = (mode) => bundleScript('console', mode);

async function bundleScript(name, mode) {
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

/** Resolves the two module names that `runtime/server.ts` imports and that no package provides. */
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
 * Returns the path of React's string renderer.
 *
 * Only this build works with the globals of QuickJS. react-dom ships it without listing it as a public entry, hence
 * the exact version in package.json and the check here.
 */
function legacyServer(mode) {
  const require = createRequire(import.meta.url);
  const reactDom = dirname(require.resolve('react-dom/package.json'));
  const file = join(reactDom, 'cjs', `react-dom-server-legacy.browser.${mode}.js`);
  if (!existsSync(file)) {
    const { version } = require('react-dom/package.json');
    throw new BuildError(
      `react-dom ${version} has no \`cjs/${basename(file)}\`: pin react and react-dom to a version with this file`,
    );
  }
  return file;
}
