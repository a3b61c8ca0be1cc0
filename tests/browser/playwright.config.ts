/** How the suite runs. The program under test is already running: see support/environment.ts. */
import { statfsSync } from 'node:fs';
import { defineConfig } from '@playwright/test';
import { findChromium } from './chromium.mjs';
import { httpsAddress, site } from './support/environment.ts';

const HTTPS = '**/https.spec.ts';
const hosts = [site.hostname, `*.${site.hostname}`].map((host) => `MAP ${host} ${httpsAddress}`);

/** Where shared memory has room it is quicker than files below `/tmp`, which Playwright has the browser take instead. */
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
  // A test waits for about a third of its time.
  workers: '150%',
  retries: 0,
  forbidOnly: true,
  reporter: 'list',
  // Generous: a machine that does other things too must not fail the tests.
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
