/**
 * Builds the UI bundle: `node build.mjs [--out DIR] [--dev]`.
 *
 * The island sources become small hashed modules for the browser, and one script that QuickJS runs in the rowhouse
 * process to render the islands' HTML. The manifest lists the files.
 *
 *   DIR/client/*.js      ES modules, split, named by a hash of their content
 *   DIR/brotli/*.js      the same files compressed (RFC 7932), so that startup need not do it; not with `--dev`
 *   DIR/loader.js        one module without static imports, inlined in every page with islands
 *   DIR/server.js        one classic script; not minified, so that its errors name functions
 *   DIR/dev.js           the script that `rowhouse serve --dev` adds to pages; not among the client files
 *   DIR/console.js       the script of the console; not among the client files
 *   DIR/manifest.json    islands with their files, imports and prop schemas
 *
 * `--dev` uses React's development build, which reports every hydration mismatch. The build is reproducible: the
 * same sources give the same bytes.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { brotliCompressSync, constants } from 'node:zlib';
import { bundleClient, bundleConsole, bundleDev, bundleServer } from './build/bundle.mjs';
import { BuildError } from './build/error.mjs';
import { findIslands, root } from './build/islands.mjs';
import { manifest } from './build/manifest.mjs';

async function main() {
  const { out, dev } = options();
  const mode = dev ? 'development' : 'production';
  const islands = await findIslands();
  // One after the other, so that an error in an island is reported once.
  const client = await bundleClient(islands, mode);
  const server = await bundleServer(islands, mode);
  const script = await bundleDev(mode);
  const forConsole = await bundleConsole(mode);

  for (const folder of ['client', 'brotli']) {
    rmSync(join(out, folder), { recursive: true, force: true });
    mkdirSync(join(out, folder), { recursive: true });
  }
  for (const [name, bytes] of client.files) {
    writeFileSync(join(out, 'client', name), bytes);
    if (!dev) writeFileSync(join(out, 'brotli', name), compressed(bytes));
  }
  writeFileSync(join(out, 'loader.js'), client.loader);
  writeFileSync(join(out, 'server.js'), server);
  writeFileSync(join(out, 'dev.js'), script);
  writeFileSync(join(out, 'console.js'), forConsole);
  writeFileSync(join(out, 'manifest.json'), `${JSON.stringify(manifest(islands, client, mode), null, 2)}\n`);
}

/** Compresses with Brotli's highest quality. */
function compressed(bytes) {
  const { BROTLI_PARAM_QUALITY, BROTLI_MAX_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
  return brotliCompressSync(bytes, {
    params: { [BROTLI_PARAM_QUALITY]: BROTLI_MAX_QUALITY, [BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
}

function options() {
  try {
    const { values } = parseArgs({ options: { out: { type: 'string' }, dev: { type: 'boolean' } } });
    return { out: resolve(values.out ?? join(root, 'dist')), dev: values.dev ?? false };
  } catch (error) {
    throw new BuildError(`${error.message}; usage: node build.mjs [--out DIR] [--dev]`);
  }
}

try {
  await main();
} catch (error) {
  // esbuild has printed its own errors with their source lines before it throws.
  if (error instanceof BuildError) console.error(`error: ${error.message}`);
  else if (!error.errors) throw error;
  process.exitCode = 1;
}
