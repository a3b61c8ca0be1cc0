/** The time of an island's hydration, by each value of `client`. */
import type { Page } from '@playwright/test';
import { living, pointAt, visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

/** Opens a page with a second copy of the header's HTML as an island, `below` pixels under the view. */
async function withIsland(page: Page, attributes: Record<string, string>, below = 0): Promise<void> {
  await visit(page, '/about');
  await page.evaluate(
    ({ attributes, below }) => {
      const header = document.querySelector('row-island[name="Header"]');
      if (!header) throw new Error('the page has no header');
      const copy = document.createElement('row-island');
      for (const { name, value } of header.attributes) copy.setAttribute(name, value);
      for (const [name, value] of Object.entries(attributes)) copy.setAttribute(name, value);
      copy.id = 'copy';
      copy.append(...[...header.childNodes].map((child) => child.cloneNode(true)));
      for (const child of copy.children) {
        if (child instanceof HTMLElement)
          child.style.cssText = `position: absolute; inset-block-start: ${below}px`;
      }
      document.body.append(copy);
    },
    { attributes, below },
  );
}

for (const client of ['load', 'idle', 'visible']) {
  test(`an island with client=${client} hydrates without an interaction`, async ({ page }) => {
    await withIsland(page, { client });
    await expect(page.locator('#copy')).toHaveAttribute('data-state', 'ready');
    // The page's own island still waits.
    await expect(page.locator('row-island[name="Consent"]')).not.toHaveAttribute('data-state');
  });
}

test('an island with client=visible hydrates near the screen, and not before', async ({ page }) => {
  const height = page.viewportSize()?.height ?? 0;
  await withIsland(page, { client: 'visible' }, height + 300);
  const island = page.locator('#copy');
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await expect(island).not.toHaveAttribute('data-state');
  await page.evaluate(() => scrollTo({ top: 150, behavior: 'instant' }));
  await expect(island).toHaveAttribute('data-state', 'ready');
});

test('an island with client=media hydrates as soon as its query matches', async ({ page }) => {
  await withIsland(page, { client: 'media', media: '(max-width: 500px)' });
  const island = page.locator('#copy');
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await expect(island).not.toHaveAttribute('data-state');
  await page.setViewportSize({ width: 480, height: 800 });
  await expect(island).toHaveAttribute('data-state', 'ready');
});

test('an element elsewhere that names an island hydrates it at an interaction', async ({ page }) => {
  await visit(page, '/about');
  await page.getByRole('contentinfo').getByRole('button').focus();
  await living(page, 'Consent');
  await expect(page.locator('row-island[name="Header"]')).not.toHaveAttribute('data-state');
});

test('a moving pointer hydrates an island with client=interaction, and a resting one does not', async ({
  page,
}) => {
  await visit(page, '/about');
  const header = page.locator('row-island[name="Header"]');
  const logo = header.locator('.header-logo');
  // A browser sends this event for a page that it shows under the pointer, on a real screen only.
  await logo.dispatchEvent('pointermove', { movementX: 0, movementY: 0 });
  await expect(header).not.toHaveAttribute('data-state');
  await pointAt(logo);
  await living(page, 'Header');
});

test.describe('an unknown value of client', () => {
  test.use({ tolerated: /no policy `often`/ });

  test('is logged, and the HTML stays', async ({ page, watch }) => {
    await withIsland(page, { client: 'often' });
    await expect(page.locator('#copy')).toHaveAttribute('data-state', 'failed');
    await expect(page.locator('#copy .header-logo')).toBeVisible();
    expect(watch.problems.join()).toContain('no policy `often`');
  });
});
