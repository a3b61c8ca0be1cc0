/** The manual of `rowhouse manual`: its search, its code blocks, its pages at all widths by day and by night. */
import type { ChildProcess } from 'node:child_process';
import { tmpdir } from 'node:os';
import { expectNoViolations } from '../../support/checks/axe.ts';
import { start, stop } from '../../support/program.ts';
import { expect, test } from '../../support/test.ts';

test.describe.configure({ mode: 'serial' });

let origin: string;
let server: ChildProcess;

test.beforeAll(async () => {
  [server, origin] = await start(tmpdir(), 'manual');
});

test.afterAll(async () => {
  await stop(server);
});

test('a search by keyboard finds a flag', async ({ page }) => {
  await page.goto(`${origin}/tutorial`);
  const field = page.getByRole('searchbox');
  await field.focus();
  await page.keyboard.type('max-uri-length');
  const places = page.locator('.search-places a');
  await expect(places.first()).toBeVisible();
  await expect(page.locator('.search-status')).toContainText('Found');
  await expectNoViolations(page, 'with places found');
  await page.keyboard.press('ArrowDown');
  await expect(places.first()).toBeFocused();
  await page.keyboard.press('ArrowUp');
  await expect(field).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/reference\/commands#serve/);
});

test('Escape closes the results, and no result is reported', async ({ page }) => {
  await page.goto(`${origin}/guides`);
  const field = page.getByRole('searchbox');
  await field.fill('redirect');
  const places = page.locator('.search-places a');
  await expect(places.first()).toBeVisible();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Escape');
  await expect(places).toHaveCount(0);
  await expect(field).toBeFocused();
  await field.fill('zzzz');
  await expect(page.locator('.search-status')).toHaveText(/Nothing found/);
});

test('a button copies its block of code, and says so', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto(`${origin}/tutorial`);
  const block = page.locator('.code-block').first();
  await block.getByRole('button').click();
  await expect(page.locator('.copy-status')).toHaveText('The code is copied.');
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toBe(await block.locator('code').textContent());
  await expectNoViolations(page, 'with the note');
});

test('reading loads no React', async ({ page, watch }) => {
  await page.goto(`${origin}/reference/manifest`);
  await expect(page.locator('html')).toHaveAttribute('data-loaded');
  expect(watch.calls.filter((url) => url.endsWith('search.json'))).toEqual([]);
  await expect(page.locator('row-island[data-state]')).toHaveCount(0);
});

const themes = ['plain', 'base'];

for (const theme of themes)
  test(`each section type of ${theme} is shown in a picture that the Tab key skips`, async ({ page }) => {
    await page.goto(`${origin}/reference/sections-${theme}`);
    const pictures = page.locator('.picture');
    expect(await pictures.count()).toBeGreaterThan(9);
    for (const picture of await pictures.all()) {
      await picture.scrollIntoViewIfNeeded();
      const shown = picture.frameLocator('iframe').locator('main > section');
      await expect(shown).toHaveCount(1);
      const link = picture.getByRole('link');
      const kind = (await link.locator('code').textContent()) ?? '';
      await expect(picture.locator('iframe')).toHaveAttribute('src', `/${theme}/_gallery/${kind}`);
      const [box, frame] = [await shown.boundingBox(), await picture.locator('.picture-frame').boundingBox()];
      // As wide as the frame without its border, or slightly less with a margin.
      expect(box?.width).toBeGreaterThan((frame?.width ?? 0) * 0.8);
      expect(box?.height).toBeGreaterThan(40);
    }
    // The next link after a picture's link is outside of the picture.
    await pictures.first().getByRole('link').focus();
    for (let presses = 0; presses < 6; presses += 1) {
      await page.keyboard.press('Tab');
      expect(await page.evaluate(() => document.activeElement?.tagName)).not.toBe('IFRAME');
    }
  });

test("a picture follows the page's colour scheme, and its link opens the section alone", async ({ page }) => {
  const ground = async (colorScheme: 'light' | 'dark') => {
    await page.emulateMedia({ colorScheme });
    await page.goto(`${origin}/reference/sections-plain`);
    // Browsers load a picture once it is near the window.
    await page.locator('.picture iframe').first().scrollIntoViewIfNeeded();
    const shown = page.frameLocator('.picture iframe >> nth=0').locator('html');
    return shown.evaluate((element) => getComputedStyle(element).backgroundColor);
  };
  expect(await ground('light')).not.toBe(await ground('dark'));
  await page.getByRole('link', { name: 'See hero by itself' }).click();
  await expect(page).toHaveURL(`${origin}/plain/_gallery/hero`);
  await expect(page.locator('main > section')).toHaveCount(1);
});

test.describe('without scripts', () => {
  test.use({ javaScriptEnabled: false });

  test('section types are shown', async ({ page }) => {
    await page.goto(`${origin}/reference/sections-plain`);
    const picture = page.locator('.picture').first();
    await picture.scrollIntoViewIfNeeded();
    await expect(picture.frameLocator('iframe').getByRole('heading')).toBeVisible();
  });

  test('the pages are listed, and no control is shown that does not work', async ({ page }) => {
    await page.goto(`${origin}/guides/theme`);
    await expect(page.getByRole('searchbox')).toBeHidden();
    await expect(page.locator('.code-copy').first()).toBeHidden();
    const pages = page.locator('.sidebar nav').first();
    await expect(pages.getByRole('link', { name: 'Reference' })).toHaveCount(1);
    await expect(pages.getByRole('link', { name: 'A theme' })).toHaveAttribute('aria-current', 'page');
  });
});

const paths = [
  '/',
  '/tutorial',
  '/guides/at-night',
  '/reference/manifest',
  '/reference/commands',
  ...themes.map((theme) => `/reference/sections-${theme}`),
];
for (const colorScheme of ['light', 'dark'] as const) {
  test.describe(colorScheme, () => {
    test.use({ colorScheme });

    for (const path of paths)
      test(`${path} passes at all widths`, async ({ page }) => {
        await page.goto(origin + path);
        for (const width of [360, 768, 1280]) {
          await page.setViewportSize({ width, height: 800 });
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          expect(overflow, `${width} px`).toBeLessThanOrEqual(0);
          // By night only colours differ, at every width in the same way.
          if (colorScheme === 'light' || width === 1280)
            await expectNoViolations(page, `${path}, ${width} px`);
        }
      });
  });
}
