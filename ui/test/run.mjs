/** Runs `test/*.test.ts` on Node's test runner, after esbuild has compiled them to JavaScript. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = fileURLToPath(new URL('.', import.meta.url));
const outdir = mkdtempSync(join(tmpdir(), 'rowhouse-ui-'));
const sources = readdirSync(here).filter((name) => name.endsWith('.test.ts'));
try {
  await build({
    absWorkingDir: here,
    entryPoints: sources,
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // React's server build loads Node's modules with `require`.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    jsx: 'automatic',
    logLevel: 'warning',
  });
  const files = sources.map((name) => join(outdir, name.replace(/\.ts$/, '.mjs'))).sort();
  const { status } = spawnSync(process.execPath, ['--test', ...files], {
    cwd: join(here, '..'),
    stdio: 'inherit',
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(outdir, { recursive: true });
}
