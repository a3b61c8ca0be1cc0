/** An island that fails affects only itself: the rest of the page works. */
import type { Page } from '@playwright/test';
import { expectNoViolations } from '../../support/checks/axe.ts';
import { unreachableLinks } from '../../support/checks/layout.ts';
import { living, pointAt, turnToIslands, visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

const TITLE = 'Unexpected Application Error!';
const BROKEN = 'broken on purpose';

test.use({ tolerated: /broken on purpose|net::ERR_FAILED|failed while loading|Failed to fetch dynamically/ });

/** Serves a component that throws during rendering, instead of the island's own. */
async function breakIsland(page: Page, name: string): Promise<void> {
  await page.route(new RegExp(`/${name}\\.\\w+\\.js$`), (route) =>
    route.fulfill({
      contentType: 'text/javascript',
      body: `export default () => { throw new Error(${JSON.stringify(BROKEN)}) }`,
    }),
  );
}

test('an island that fails while it runs shows an error, and the others work', async ({ page, watch }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await visit(page, '/');
  // The open menu listens for the focus.
  const menu = page.getByRole('banner').getByRole('button');
  await pointAt(menu);
  await living(page, 'Header');
  await page.evaluate((message) => {
    const listen = document.addEventListener;
    document.addEventListener = () => {
      document.addEventListener = listen;
      throw new Error(message);
    };
  }, BROKEN);
  await menu.click();

  const alert = page.getByRole('alert');
  await expect(alert.getByRole('heading', { name: TITLE })).toBeVisible();
  await expect(page.getByRole('alert')).toHaveCount(1);
  await expect(page.locator('row-island[data-state="failed"]')).toHaveAttribute('name', 'Header');
  // The cause is only for developers.
  await expect(alert).not.toContainText(BROKEN);
  expect(watch.problems).toEqual([`console error: island \`Header\` failed while running: Error: ${BROKEN}`]);

  await page.getByLabel('First Name').fill('Ada');
  await page.getByRole('button', { name: 'Send Message' }).click();
  await expect(page.getByRole('region', { name: 'F8' }).getByRole('listitem')).toBeVisible();
  const notice = page.locator('.consent');
  await notice.getByRole('button').first().click();
  await expect(notice).toBeHidden();
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await expectNoViolations(page, 'with an error screen');
});

test('an island without markup that fails at once shows an error', async ({ page }) => {
  await breakIsland(page, 'Toaster');
  await visitBroken(page, '/');
  await expect(page.getByRole('alert').getByRole('heading', { name: TITLE })).toBeVisible();
  await page.getByRole('contentinfo').getByRole('link', { name: 'Labs' }).click();
  await page.waitForURL('/labs');
});

test('a toast that fails shows an error, and the form keeps typed text', async ({ page }) => {
  await page.route(/\/Toasts\.\w+\.js$/, (route) => route.abort());
  await visit(page, '/');
  await page.getByLabel('First Name').fill('Ada');
  await page.getByRole('button', { name: 'Send Message' }).click();
  await expect(page.getByRole('alert').getByRole('heading', { name: TITLE })).toBeVisible();
  await expect(page.getByLabel('First Name')).toHaveValue('Ada');
});

test('an island that fails during hydration keeps the HTML of the server', async ({ page, watch }) => {
  await breakIsland(page, 'InquiryForm');
  await visitBroken(page, '/contact');
  await expect(page.locator('row-island[name="InquiryForm"]')).toHaveAttribute('data-state', 'failed');
  await expect(page.getByText(TITLE)).toHaveCount(0);
  const form = page.locator('form').filter({ has: page.getByLabel('Your Name') });
  await expect(form).toHaveAttribute('action', /^mailto:/);
  await form.getByLabel('Your Name').fill('Ada');
  await expect(form.getByLabel('Your Name')).toHaveValue('Ada');
  expect(watch.problems.join()).toContain('`InquiryForm` failed while hydrating');
});

test.describe('on a phone', () => {
  test.use({ viewport: { width: 360, height: 740 } });

  test('a header without its script keeps its links', async ({ page }) => {
    await page.route(/\/Header\.\w+\.js$/, (route) => route.abort());
    await page.goto('/about');
    await page.getByRole('banner').getByRole('button').click();
    await expect(page.locator('row-island[name="Header"]')).toHaveAttribute('data-state', 'failed');
    expect(await unreachableLinks(page, 'header')).toEqual([]);
  });
});

/** Opens a page with a broken island; the others hydrate. */
async function visitBroken(page: Page, path: string): Promise<void> {
  // Intercepted files arrive too late for a view transition, which the browser would report.
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await visit(page, path);
  await turnToIslands(page);
  await expect(page.locator('row-island[data-state="failed"]')).toHaveCount(1);
  await expect(page.locator('row-island:not([data-state="ready"])')).toHaveCount(1);
}
