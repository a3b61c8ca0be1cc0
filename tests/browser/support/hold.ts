/** Files that arrive when the test says so: which of two things is first must not be a matter of luck. */
import type { Page } from '@playwright/test';

/** The loader, whatever it holds. */
export const LOADER = /\/loader\.\w+\.js$/;

/** Holds back every file whose URL matches until the function it returns is called. Call before the page is opened. */
export async function holdBack(page: Page, files: RegExp): Promise<() => void> {
  let release = () => {};
  const released = new Promise<void>((done) => {
    release = done;
  });
  await page.route(files, async (route) => {
    await released;
    await route.continue();
  });
  return release;
}
