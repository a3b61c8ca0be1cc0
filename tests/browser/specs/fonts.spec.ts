/** What a page fetches of its theme's fonts: the files that its own characters need, and no others. */
import { address, canonicalPages, label } from '../support/routes.ts';
import { arrive } from '../support/settle.ts';
import { expect, test } from '../support/test.ts';

/** Bytes that a page may wait for. */
const MOST = 20_480;
/** Whole sentences in italics, as quotes have them, are no part of a first view and come on top. */
const LATER = /-italic\.more\./;

for (const route of canonicalPages) {
  test(label(route), async ({ page }) => {
    const fonts = new Map<string, number>();
    page.on('response', async (response) => {
      if (response.request().resourceType() !== 'font') return;
      const name = new URL(response.url()).pathname.split('/').at(-1) ?? '';
      fonts.set(name, Number(response.headers()['content-length']));
    });
    await arrive(page, address(route));
    await page.evaluate(() => document.fonts.ready.then(() => undefined));

    expect(fonts.size).toBeGreaterThanOrEqual(2);
    const bytes = [...fonts].filter(([name]) => !LATER.test(name)).map(([, size]) => size);
    expect(
      bytes.reduce((sum, size) => sum + size, 0),
      [...fonts.keys()].join(', '),
    ).toBeLessThanOrEqual(MOST);
  });
}
