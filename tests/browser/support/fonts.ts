/**
 * Web fonts: which of them a page fetches, and that they arrive when the test says so. Whether they beat the first paint
 * must not be a matter of luck.
 */
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

/** The fonts that the page has fetched so far: file names, and their bytes as sent. Call before the page is opened. */
export function recordFonts(page: Page): ReadonlyMap<string, number> {
  const fonts = new Map<string, number>();
  page.on('response', (response) => {
    if (response.request().resourceType() !== 'font') return;
    const name = new URL(response.url()).pathname.split('/').at(-1) ?? '';
    fonts.set(name, Number(response.headers()['content-length']));
  });
  return fonts;
}
