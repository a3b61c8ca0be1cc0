/**
 * A page under its tenant's host, prefix and aliases: the text is the same, links stay in the mount of the visitor, and
 * every address names the canonical one. All of this is in the HTML, so scripts are off, which is faster.
 */
import type { Page } from '@playwright/test';
import { layOutAll } from '../../support/checks/layout.ts';
import { canonical } from '../../support/checks/metadata.ts';
import { address, canonicalPages, label, pages, type Route, samples } from '../../support/routes.ts';
import { expect, test } from '../../support/test.ts';

test.use({ javaScriptEnabled: false });

/** Pages with more than one address. */
const mounted = canonicalPages
  .map((route) => ({
    route,
    others: pages.filter(
      ({ canonical, tenant, file }) => !canonical && tenant === route.tenant && file === route.file,
    ),
  }))
  .filter(({ others }) => others.length > 0);

test('every address belongs to a page with a canonical address', () => {
  const covered = mounted.reduce((sum, { others }) => sum + others.length, canonicalPages.length);
  expect(mounted).not.toEqual([]);
  expect(covered).toBe(pages.length);
});

for (const { route, others } of mounted.filter(({ route }) => samples.includes(route))) {
  test(`${label(route)} has the same text at every address`, async ({ page }) => {
    await page.goto(address(route));
    const words = await shown(page);
    expect.soft(await strays(page, route), `links at ${label(route)} to another mount`).toEqual([]);

    for (const other of others) {
      const response = await page.goto(address(other));
      expect.soft(response?.status(), label(other)).toBe(200);
      expect.soft(await canonical(page), label(other)).toBe(address(route));
      expect.soft(await shown(page), label(other)).toBe(words);
      expect.soft(await strays(page, other), `links at ${label(other)} to another mount`).toEqual([]);
    }
  });
}

/** Returns the text of a page. */
async function shown(page: Page): Promise<string> {
  await layOutAll(page);
  return page.getByRole('main').innerText();
}

/** Returns links to the page's own tenant that leave the mount. */
async function strays(page: Page, route: Route): Promise<string[]> {
  const links = await page
    .locator('a[href]')
    .evaluateAll((anchors) =>
      anchors.map((anchor) => new URL(anchor.getAttribute('href') ?? '', document.URL).href),
    );
  return links.filter((link) => {
    const target = pages.find((page) => address(page) === link.replace(/#.*/, ''));
    return target?.tenant === route.tenant && mountOf(target) !== mountOf(route);
  });
}

/** Returns the mount of a page: the nearest landing page of its tenant above the page. */
function mountOf({ tenant, host, path }: Route): string {
  const roots = pages
    .filter((page) => page.tenant === tenant && page.host === host && page.file.endsWith('/pages/index.md'))
    .map(({ path }) => path.replace(/\/$/, ''))
    .filter((root) => path === root || path.startsWith(`${root}/`));
  return `${host}${roots.sort((a, b) => b.length - a.length)[0] ?? ''}`;
}
