/**
 * Finds the browser for the tests, so that `cargo test` works on a machine without an installed browser.
 *
 * The first browser that starts is used: `CHROMIUM` or `CHROME` (a path), a name on PATH, the usual place on macOS, or
 * the headless build of the npm package `@sparticuz/chromium`, unpacked once below `node_modules`.
 * `ROWHOUSE_CHROMIUM=bundled` uses only the last.
 *
 * Run as a program, this module prints the path.
 */
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const MACOS = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];
const MODULES = fileURLToPath(new URL('node_modules/', import.meta.url));
const PACKAGE = join(MODULES, '@sparticuz/chromium');

const START = `#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
[ -e /etc/fonts/fonts.conf ] || export FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/chromium" "$@"
`;
const FONTS = `<?xml version="1.0"?>
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`;

/**
 * @param {NodeJS.ProcessEnv} env
 * @returns {string} path of a browser that has just responded to `--version`
 */
export function findChromium(env = process.env) {
  /** @type {string[]} */
  const failures = [];
  /** @param {string} path */
  const works = (path) => {
    const reason = whyNot(path);
    if (reason) failures.push(`\`${path}\` ${reason}`);
    return reason === null;
  };

  if (env.ROWHOUSE_CHROMIUM !== 'bundled') {
    const installed = installedCandidates(env).find(works);
    if (installed) return installed;
  }
  try {
    const bundled = unpackBundled();
    if (works(bundled)) return bundled;
  } catch (error) {
    failures.push(error instanceof Error ? error.message : String(error));
  }
  throw new Error(
    `no browser to test with: ${failures.join('; ')}. Install Chromium or Google Chrome, or name one with \`CHROMIUM=/path/to/chrome\``,
  );
}

/**
 * Returns the installed browsers. A variable that names a missing file stays in the list, for the error message.
 *
 * @param {NodeJS.ProcessEnv} env
 */
function installedCandidates(env) {
  const named = [env.CHROMIUM ?? '', env.CHROME ?? ''].filter((path) => path !== '');
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  const onPath = NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).filter(isExecutable);
  return [...named, ...onPath, ...MACOS.filter(isExecutable)];
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Starts the browser for its version. A missing shared library fails at this point.
 *
 * @param {string} path
 * @returns {string | null} the reason why the browser does not work
 */
function whyNot(path) {
  const run = spawnSync(path, ['--version'], { encoding: 'utf8', timeout: 30_000 });
  if (run.error) return `does not start: ${run.error.message}`;
  if (run.status === 0) return null;
  return `does not start: ${run.stderr.trim().split('\n').at(-1) ?? `status ${run.status}`}`;
}

/**
 * Unpacks the package: brotli archives with the browser, the NSS libraries that a bare machine lacks, and a font
 * family. A small script beside them sets variables for the loader and fontconfig, so callers need only its path. The
 * folder gets its final name when it is complete, since two processes may unpack at the same time.
 *
 * @returns {string} path of that script
 */
function unpackBundled() {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`\`@sparticuz/chromium\` has no browser for ${process.platform} ${process.arch}`);
  }
  if (!existsSync(PACKAGE)) {
    throw new Error('`@sparticuz/chromium` is not installed (run `npm ci` in `tests/browser`)');
  }
  /** @type {{ version: string }} */
  const { version } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'));
  const cache = join(MODULES, '.cache');
  const folder = join(cache, `chromium-${version}`);
  const start = join(folder, 'start');
  if (existsSync(start)) return start;

  mkdirSync(cache, { recursive: true });
  const draft = mkdtempSync(join(cache, 'unpacking-'));
  try {
    writeFileSync(join(draft, 'chromium'), unpacked('chromium.br'), { mode: 0o755 });
    untar(unpacked('al2023.tar.br'), draft);
    untar(unpacked('fonts.tar.br'), draft);
    writeFileSync(join(draft, 'fonts.conf'), FONTS);
    writeFileSync(join(draft, 'start'), START, { mode: 0o755 });
    renameSync(draft, folder);
  } catch (error) {
    if (!existsSync(start)) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return start;
}

/** @param {string} name */
function unpacked(name) {
  return brotliDecompressSync(readFileSync(join(PACKAGE, 'bin', name)));
}

/**
 * @param {Buffer} archive
 * @param {string} folder
 */
function untar(archive, folder) {
  const run = spawnSync('tar', ['-x', '-f', '-', '-C', folder], { input: archive, encoding: 'utf8' });
  if (run.error) throw new Error(`\`tar\` does not start: ${run.error.message}`);
  if (run.status !== 0) throw new Error(`\`tar\` failed: ${run.stderr.trim()}`);
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    console.log(findChromium());
  } catch (error) {
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
