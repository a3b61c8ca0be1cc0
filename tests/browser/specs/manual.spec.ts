/** The manual that `rowhouse manual` serves: its search, its code, its pages at all widths by day and by night. */
import type { ChildProcess } from 'node:child_process';
import { tmpdir } from 'node:os';
import { expectNoViolations } from '../support/axe.ts';
import { start } from '../support/program.ts';
import { expect, test } from '../support/test.ts';

test.describe.configure({ mode: 'serial' });

let origin: string;
let server: ChildProcess;

test.beforeAll(async () => {
  [server, origin] = await start(tmpdir(), 'manual');
});

test.afterAll(() => {
  server.kill();
});

test('a search leads to a flag by keyboard alone', async ({ page }) => {
  await page.goto(`${origin}/tutorial`);
  const field = page.getByRole('searchbox');
  await field.focus();
  await page.keyboard.type('max-connections');
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

test('Escape closes what was found, and nothing found is said', async ({ page }) => {
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

test('who only reads fetches no React', async ({ page, watch }) => {
  await page.goto(`${origin}/reference/manifest`);
  await expect(page.locator('html')).toHaveAttribute('data-loaded');
  expect(watch.calls.filter((url) => url.endsWith('search.json'))).toEqual([]);
  await expect(page.locator('row-island[data-state]')).toHaveCount(0);
});

test.describe('without scripts', () => {
  test.use({ javaScriptEnabled: false });

  test('the pages are listed, and nothing is shown that does nothing', async ({ page }) => {
    await page.goto(`${origin}/guides/theme`);
    await expect(page.getByRole('searchbox')).toBeHidden();
    await expect(page.locator('.code-copy').first()).toBeHidden();
    const pages = page.locator('.sidebar nav').first();
    await expect(pages.getByRole('link', { name: 'Reference' })).toHaveCount(1);
    await expect(pages.getByRole('link', { name: 'A theme' })).toHaveAttribute('aria-current', 'page');
  });
});

const paths = ['/', '/tutorial', '/guides/at-night', '/reference/manifest', '/reference/commands'];
for (const colorScheme of ['light', 'dark'] as const) {
  test.describe(colorScheme, () => {
    test.use({ colorScheme });

    for (const path of paths)
      test(`${path} holds at all widths`, async ({ page }) => {
        for (const width of [360, 768, 1280]) {
          await page.setViewportSize({ width, height: 800 });
          await page.goto(origin + path);
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          expect(overflow, `${width} px`).toBeLessThanOrEqual(0);
          await expectNoViolations(page, `${path}, ${width} px`);
        }
      });
  });
}
