/** Missing pages: the status, no indexing, the right text, and a link back. */
import type { Page } from '@playwright/test';
import { expectNoViolations } from '../../support/checks/axe.ts';
import { sidewaysOverflow } from '../../support/checks/layout.ts';
import { address, canonicalPages } from '../../support/routes.ts';
import { loaded, visit } from '../../support/settle.ts';
import { expect, test, type Watch } from '../../support/test.ts';

// The browser reports the status, and the page logs the missing path: both are intended.
test.use({ tolerated: /status (of )?404|^console \w+: .*(no-such|\/projects\/after)/ });

const PAGE = {
  title: 'Page not found',
  text: 'The page you’re looking for doesn’t exist or has been moved.',
  back: 'Return to Home',
  to: '/',
};

const STUDIO = [
  { path: '/no-such-page', ...PAGE },
  { path: '/about/no-such-page', ...PAGE },
  { path: '/portfolio/no-such-slug', ...PAGE },
  // The projects page links to this path, which is known to be missing.
  { path: '/projects/after', ...PAGE },
  {
    path: '/blog/no-such-post',
    title: 'Post not found',
    text: 'The article you are looking for does not exist.',
    back: 'Back to Blog',
    to: '/blog',
  },
  { path: '/work/no-such-study', title: 'Case study not found', text: '', back: 'Back to Work', to: '/work' },
  { path: '/labs/no-such-project', title: 'Project not found', text: '', back: 'Back to Labs', to: '/labs' },
];

/** Opens a missing page and checks what all missing pages share. */
async function expectMissing(page: Page, watch: Watch, url: string): Promise<void> {
  const response = await page.goto(url);
  expect(response?.status()).toBe(404);
  await expect(page.locator('meta[name="robots"]')).toHaveAttribute('content', /noindex/);
  await loaded(page);
  const { pathname } = new URL(url);
  const logged = () => watch.problems.filter((line) => line.startsWith('console') && line.includes(pathname));
  await expect.configure({ soft: true }).poll(logged, { message: 'the path in the console' }).not.toEqual([]);
}

for (const { path, title, text, back, to } of STUDIO) {
  test(`${path} is a missing page with its own text and a link back`, async ({ page, watch, baseURL }) => {
    await expectMissing(page, watch, new URL(path, baseURL).href);
    const main = page.getByRole('main');
    await expect(main.getByRole('heading', { level: 1 })).toHaveText(title);
    // Accepts typographic and straight apostrophes.
    expect((await main.innerText()).replaceAll("'", '’')).toContain(text);
    if (title === PAGE.title) await expect(main).toContainText('404');
    await main.getByRole('link', { name: back }).click();
    await page.waitForURL(to);
  });
}

// Each tenant has its own 404 page: its landing page represents all of its mounts.
for (const route of landingPages()) {
  const url = `${address(route).replace(/\/$/, '')}/no-such-page`;
  const { hostname, pathname } = new URL(url);
  test(`${hostname}${pathname} is the 404 page of its tenant`, async ({ page, watch }) => {
    await expectMissing(page, watch, url);
    await expect(page.getByRole('heading', { level: 1 })).toHaveText(PAGE.title);
    await expect(page.getByRole('banner').getByRole('link').first()).toBeVisible();
  });
}

for (const colorScheme of ['light', 'dark'] as const) {
  test(`the 404 page is accessible (${colorScheme})`, async ({ page }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width: 360, height: 800 });
    await visit(page, '/no-such-page');
    expect(await sidewaysOverflow(page)).toEqual([]);
    await expectNoViolations(page, 'not found');
  });
}

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false });

  test('the text and the link back are shown', async ({ page }) => {
    await page.goto('/blog/no-such-post');
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Post not found');
    await expect(page.getByRole('link', { name: 'Back to Blog' })).toBeVisible();
  });
});

/** Returns the shortest canonical path of each tenant. */
function landingPages() {
  const tenants = new Map<string, (typeof canonicalPages)[number]>();
  for (const route of canonicalPages) {
    const known = tenants.get(route.tenant);
    if (!known || route.path.length < known.path.length) tenants.set(route.tenant, route);
  }
  return [...tenants.values()];
}
