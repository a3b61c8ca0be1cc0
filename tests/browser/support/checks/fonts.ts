/**
 * Web fonts: the fonts that a page loads, and their arrival at a chosen time. Their order relative to the first paint
 * must not be random.
 */
import type { Page } from '@playwright/test';
import { holdBack } from '../hold.ts';

/** Holds back every font of the page until the returned function is called. Call before opening the page. */
export async function holdFonts(page: Page): Promise<() => Promise<void>> {
  const release = await holdBack(page, /\.woff2$/);
  return async () => {
    release();
    await page.evaluate(() => document.fonts.ready.then(() => undefined));
  };
}

/** Returns the loaded fonts: file names, and their bytes as sent. Call before opening the page. */
export function recordFonts(page: Page): ReadonlyMap<string, number> {
  const fonts = new Map<string, number>();
  page.on('response', (response) => {
    if (response.request().resourceType() !== 'font') return;
    const name = new URL(response.url()).pathname.split('/').at(-1) ?? '';
    fonts.set(name, Number(response.headers()['content-length']));
  });
  return fonts;
}
