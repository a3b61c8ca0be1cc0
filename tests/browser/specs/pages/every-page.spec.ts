/**
 * Every page on a phone by day: accessibility, layout shifts, overflow, size of fonts, and metadata. One page of each
 * kind also by night, on a desktop and at three widths. Messages of the browser fail the test, too (support/test.ts).
 */
import { expectNoViolations } from '../../support/checks/axe.ts';
import { holdFonts, recordFonts } from '../../support/checks/fonts.ts';
import {
  layoutShifts,
  recordLayoutShifts,
  sidewaysOverflow,
  unseenText,
} from '../../support/checks/layout.ts';
import { canonical, companyName } from '../../support/checks/metadata.ts';
import { address, canonicalPages, label, samples } from '../../support/routes.ts';
import { arrive, stillness } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

const WIDTHS = [360, 768, 1280];
const HEIGHT = 800;
const SCHEMES = ['light', 'dark'] as const;

/** Bytes of fonts that a page may wait for. */
const FONTS_MOST = 20_480;
/** Complete sentences in italics, as in quotes, are not in the first view and do not count. */
const FONTS_LATER = /-italic\.more\./;

test('the program lists pages, and samples of each kind', () => {
  expect(samples.length).toBeGreaterThan(10);
  expect(canonicalPages.length).toBeGreaterThan(samples.length);
});

for (const route of canonicalPages) {
  const isSample = samples.includes(route);

  test(`${label(route)} passes on a phone by day`, async ({ page, context }) => {
    const url = address(route);
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 360, height: HEIGHT });
    const releaseFonts = await holdFonts(page);
    const fonts = recordFonts(page);
    await recordLayoutShifts(page);
    await arrive(page, url);
    const shifts = await layoutShifts(page);
    expect.soft(shifts, 'layout shifts').toEqual([]);
    await releaseFonts();
    await stillness(page);
    // A late font is stored for the next page (font-display: optional), so it must not move anything either.
    expect.soft(await layoutShifts(page), 'layout shifts once the fonts are there').toEqual(shifts);
    // The page loaded only the theme's fonts that its characters need.
    expect.soft(fonts.size, 'fonts').toBeGreaterThanOrEqual(2);
    const waitedFor = [...fonts].filter(([name]) => !FONTS_LATER.test(name)).map(([, bytes]) => bytes);
    expect
      .soft(
        waitedFor.reduce((sum, bytes) => sum + bytes, 0),
        [...fonts.keys()].join(', '),
      )
      .toBeLessThanOrEqual(FONTS_MOST);

    if (isSample) {
      // From here on with loaded fonts, on a desktop and by night.
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.setViewportSize({ width: 1280, height: HEIGHT });
      await arrive(page, url);
      expect.soft(await layoutShifts(page), 'layout shifts on a desk').toEqual([]);
    }
    const company = await companyName(page);
    const title = await page.title();
    expect.soft(title.endsWith(` | ${company}`) && title.length > company.length + 3, title).toBe(true);
    expect.soft(await canonical(page)).toBe(url);
    await expect.soft(page.locator('h1')).toHaveCount(1);
    await expect.soft(page.getByRole('main').getByRole('heading', { level: 1 }).first()).toBeVisible();
    expect.soft(await unseenText(page, 'main'), 'unseen text').toEqual([]);
    expect.soft(await context.cookies(), 'cookies').toEqual([]);

    // With reduced motion, no animation is in progress while axe checks colours.
    await page.emulateMedia({ reducedMotion: 'reduce' });
    for (const width of isSample ? WIDTHS : WIDTHS.slice(0, 1)) {
      await page.setViewportSize({ width, height: HEIGHT });
      expect.soft(await sidewaysOverflow(page), `sideways scrolling at ${width} px`).toEqual([]);
      for (const colorScheme of isSample ? SCHEMES : SCHEMES.slice(0, 1)) {
        await page.emulateMedia({ colorScheme });
        await stillness(page);
        await expectNoViolations(page, `${width} px, ${colorScheme}`);
      }
    }
    // The narrowest screen of WCAG's reflow criterion.
    await page.setViewportSize({ width: 320, height: HEIGHT });
    expect.soft(await sidewaysOverflow(page), 'sideways scrolling at 320 px').toEqual([]);
  });
}
