/**
 * Back and forward come from the browser's cache: the page is as it was left, typed words and all.
 *
 * Playwright switches that cache off, so this file starts a browser of its own with it on, and goes back as a visitor
 * does, by the history: Playwright's own `goBack` waits for a load that never comes.
 */
import type { Page } from '@playwright/test';
import config from '../playwright.config.ts';
import { site } from '../support/environment.ts';
import { visit } from '../support/settle.ts';
import { expect, test } from '../support/test.ts';

declare global {
  interface Window {
    shownFromCache: boolean[];
  }
}

test.use({
  launchOptions: { ...config.use?.launchOptions, ignoreDefaultArgs: ['--disable-back-forward-cache'] },
});

/**
 * Whether the browser keeps pages at all: the headless shell does not, whatever the page is like. Asked with two pages
 * that have nothing on them, so that nothing of ours can be the reason.
 */
async function hasCache(page: Page): Promise<boolean> {
  const context = await page.context().browser()?.newContext();
  if (!context) return false;
  const probe = await context.newPage();
  await probe.route('**/*', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<title>probe</title>' }),
  );
  await probe.addInitScript(() => {
    window.shownFromCache = [];
    addEventListener('pageshow', ({ persisted }) => window.shownFromCache.push(persisted));
  });
  await probe.goto(`${site.origin}/one`);
  await probe.evaluate(() => location.assign('/two'));
  await probe.waitForURL('**/two');
  await probe.evaluate(() => history.back());
  await probe.waitForFunction(() => location.pathname === '/one' && window.shownFromCache.length > 0);
  const kept = await probe.evaluate(() => window.shownFromCache.includes(true));
  await context.close();
  return kept;
}

for (const { path, link } of [
  { path: '/', link: 'Projects' },
  { path: '/contact', link: 'Projects' },
  { path: '/blog?tag=mobile', link: 'Contact' },
]) {
  test(`${path} comes back as it was left`, async ({ page }) => {
    test.skip(!(await hasCache(page)), 'this browser has no cache for back and forward');
    await page.addInitScript(() => {
      window.shownFromCache = [];
      addEventListener('pageshow', ({ persisted }) => window.shownFromCache.push(persisted));
    });
    await visit(page, path);
    const field = page.getByLabel('Email').first();
    if ((await field.count()) > 0) await field.fill('ada@example.com');
    await page.getByRole('banner').getByRole('link', { name: link }).click();
    await expect(page.locator('.header-link[aria-current]')).toHaveText(link);

    await page.evaluate(() => history.back());
    await expect(page.locator('.header-link[aria-current]').filter({ hasText: link })).toHaveCount(0);
    await expect.poll(() => page.evaluate(() => window.shownFromCache)).toEqual([false, true]);
    if ((await field.count()) > 0) await expect(field).toHaveValue('ada@example.com');
    // The page is alive, not only its picture. A browser may put it back to where it was left a moment after it is shown.
    const scrolledTo = (top: number) =>
      page.evaluate((top) => {
        scrollTo({ top, behavior: 'instant' });
        return document.documentElement.hasAttribute('data-scrolled');
      }, top);
    await expect.poll(() => scrolledTo(0)).toBe(false);
    await expect.poll(() => scrolledTo(60)).toBe(true);
  });
}
