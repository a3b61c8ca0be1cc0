/** How the suite runs. The program under test is already running: see support/environment.ts. */
import { defineConfig } from '@playwright/test';
import { findChromium } from './chromium.mjs';
import { httpsAddress, site } from './support/environment.ts';

const HTTPS = '**/https.spec.ts';
const hosts = [site.hostname, `*.${site.hostname}`].map((host) => `MAP ${host} ${httpsAddress}`);

export default defineConfig({
  testDir: 'specs',
  testMatch: httpsAddress ? HTTPS : '**/*.spec.ts',
  testIgnore: httpsAddress ? [] : HTTPS,
  fullyParallel: true,
  workers: 2,
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
