/** Web fonts that arrive when the test says so: whether they beat the first paint must not be a matter of luck. */
import type { Page } from '@playwright/test';
import { holdBack } from './hold.ts';

/** Holds back every font of the page until the function it returns is called. Call before the page is opened. */
export async function holdFonts(page: Page): Promise<() => Promise<void>> {
  const release = await holdBack(page, /\.woff2$/);
  return async () => {
    release();
    await page.evaluate(() => document.fonts.ready.then(() => undefined));
  };
}
