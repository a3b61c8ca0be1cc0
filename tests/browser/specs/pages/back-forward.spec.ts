/**
 * Back and forward use the browser's cache: the page is as the visitor left it, with typed text.
 *
 * Playwright disables this cache, so this file starts a browser with the cache. It goes back by the history, since
 * Playwright's `goBack` waits for a load that does not happen.
 */
import type { Page } from '@playwright/test';
import config from '../../playwright.config.ts';
import { site } from '../../support/environment.ts';
import { visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

declare global {
  interface Window {
    shownFromCache: boolean[];
  }
}

test.use({
  launchOptions: { ...config.use?.launchOptions, ignoreDefaultArgs: ['--disable-back-forward-cache'] },
});

/**
 * Whether the browser stores pages at all; the headless shell does not. Tested with two empty pages, to exclude reasons
 * in the pages of the sites.
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
  test(`${path} is restored as the visitor left it`, async ({ page }) => {
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
    // The page works, and is not only an image. A browser may restore the scroll position slightly after it shows the
    // page.
    const scrolledTo = (top: number) =>
      page.evaluate((top) => {
        scrollTo({ top, behavior: 'instant' });
        return document.documentElement.hasAttribute('data-scrolled');
      }, top);
    await expect.poll(() => scrolledTo(0)).toBe(false);
    await expect.poll(() => scrolledTo(60)).toBe(true);
  });
}
