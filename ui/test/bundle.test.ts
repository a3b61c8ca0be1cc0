/** The bundle: its sizes, its manifest and its reproducibility. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import { bundle } from './bundle.ts';

/** Maximum sizes in bytes, compressed with Brotli. */
const LOADER = 1_024;
const PAGE = 80_000;
/** Bytes from which Chromium compiles a script on another thread while it downloads. */
const STREAMED = 30_000;

const { client, console: script, loader, manifest, server } = bundle();

const filesOf = ({ file, imports }: { file: string; imports: string[] }) => [file, ...imports];
const named = new Set([manifest.runtime, ...Object.values(manifest.islands)].flatMap(filesOf));
/** Modules that islands import only when a visitor does something. */
const later = [...client.keys()].filter((file) => !named.has(file));

const compressed = (name: string) => brotliCompressSync(client.get(name) ?? '').length;

/** Returns all files that a page with these islands fetches, sooner or later. */
function page(...islands: string[]): string[] {
  const modules = islands.map((name) => manifest.islands[name]).filter((island) => island !== undefined);
  assert.equal(modules.length, islands.length);
  return [...new Set([...[manifest.runtime, ...modules].flatMap(filesOf), ...later])];
}

test('toasts and rare policies are fetched only when needed', () => {
  assert.deepEqual(
    later.map((file) => file.split('.')[0]),
    ['Toasts', 'when'],
  );
});

test('modules named by a page are small, except for React', () => {
  for (const file of named) {
    const size = client.get(file)?.length ?? 0;
    const first = filesOf(manifest.runtime).includes(file);
    assert.ok(first || size < STREAMED, `${file}: ${size} bytes`);
  }
});

test('the loader is small and has no imports', (t) => {
  const size = brotliCompressSync(loader).length;
  t.diagnostic(`loader: ${size} bytes`);
  assert.ok(size <= LOADER, `${size} bytes, ${LOADER} at most`);
  assert.doesNotMatch(loader, /\b(import|from)\s*"/);
});

/** The islands that the theme places on every page; a page adds its own. */
const EVERYWHERE = ['Header', 'Toaster', 'Consent'];

for (const name of Object.keys(manifest.islands)) {
  test(`a page with ${name} stays within its budget`, (t) => {
    const files = page(...EVERYWHERE, name).map((file) => ({ file, size: compressed(file) }));
    const size = files.reduce((sum, file) => sum + file.size, 0);
    const parts = files.map(({ file, size }) => `${file} ${size}`).join(', ');
    t.diagnostic(`${size} bytes: ${parts}`);
    assert.ok(size <= PAGE, `${size} bytes, ${PAGE} at most: ${parts}`);
  });
}

test('the manifest names exactly the existing files', () => {
  assert.deepEqual(page(...Object.keys(manifest.islands)).sort(), [...client.keys()]);
  for (const name of client.keys()) assert.match(name, /^\w+\.[A-Z0-9]{8}\.js$/);
});

test('production and development bundles differ', () => {
  const dev = bundle('--dev');
  assert.equal(manifest.mode, 'production');
  assert.equal(dev.manifest.mode, 'development');
  assert.notEqual(dev.manifest.runtime.file, manifest.runtime.file);
  assert.deepEqual(Object.keys(dev.manifest.islands), Object.keys(manifest.islands));
});

test('the same sources give the same bytes', () => {
  assert.deepEqual(bundle(), { client, console: script, loader, manifest, server });
});
