/** Configuration of the browser tests. The program under test already runs: see support/environment.ts. */
import { statfsSync } from 'node:fs';
import { defineConfig } from '@playwright/test';
import { findChromium } from './chromium.mjs';
import { httpsAddress, site } from './support/environment.ts';

const HTTPS = '**/https.spec.ts';
const hosts = [site.hostname, `*.${site.hostname}`].map((host) => `MAP ${host} ${httpsAddress}`);

/** Whether shared memory has enough space. It is faster than files below `/tmp`, which Playwright uses by default. */
function hasSharedMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return bavail * bsize > 2 ** 30;
  } catch {
    return false;
  }
}

export default defineConfig({
  testDir: 'specs',
  testMatch: httpsAddress ? HTTPS : '**/*.spec.ts',
  testIgnore: httpsAddress ? [] : HTTPS,
  fullyParallel: true,
  // Tests wait for about a third of their time.
  workers: '150%',
  retries: 0,
  forbidOnly: true,
  reporter: 'list',
  // Generous, so that tests pass on a busy machine.
  timeout: 90_000,
  expect: { timeout: 10_000 },
  use: {
    baseURL: site.origin,
    browserName: 'chromium',
    actionTimeout: 10_000,
    navigationTimeout: 30_000,
    launchOptions: {
      executablePath: findChromium(),
      ignoreDefaultArgs: hasSharedMemory() ? ['--disable-dev-shm-usage'] : [],
      args: [
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        ...(httpsAddress ? [`--host-resolver-rules=${hosts.join(',')}`] : []),
      ],
    },
  },
});
