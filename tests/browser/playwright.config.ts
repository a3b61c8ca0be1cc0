/** How the suite runs. The program under test is already running: see support/environment.ts. */
import { defineConfig } from '@playwright/test';
import { findChromium } from './chromium.mjs';
import { site } from './support/environment.ts';

export default defineConfig({
  testDir: 'specs',
  fullyParallel: true,
  workers: 2,
  retries: 0,
  forbidOnly: true,
  reporter: 'list',
  timeout: 30_000,
  use: {
    baseURL: site.origin,
    browserName: 'chromium',
    actionTimeout: 5_000,
    navigationTimeout: 15_000,
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
      ],
    },
  },
});
