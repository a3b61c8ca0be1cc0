/**
 * The same page under a tenant's host, prefix and aliases: the words are the same, links stay where the visitor is,
 * and every address names the one canonical.
 */
import { canonical } from '../support/metadata.ts';
import { address, canonicalPages, label, pages, type Route } from '../support/routes.ts';
import { expect, test } from '../support/test.ts';

const others = pages.filter((route) => !route.canonical);

test('there are other mounts', () => {
  expect(others).not.toEqual([]);
});

for (const route of others) {
  test(label(route), async ({ page }) => {
    const original = canonicalPages.find(
      ({ tenant, file }) => tenant === route.tenant && file === route.file,
    );
    if (!original) throw new Error(`\`${label(route)}\` has no canonical address`);

    await page.goto(address(original));
    const words = await page.getByRole('main').innerText();

    const response = await page.goto(address(route));
    expect(response?.status()).toBe(200);
    expect(await canonical(page)).toBe(address(original));
    expect(await page.getByRole('main').innerText()).toBe(words);

    const links = await page
      .locator('a[href]')
      .evaluateAll((anchors) =>
        anchors.map((anchor) => (anchor instanceof HTMLAnchorElement ? anchor.href.replace(/#.*/, '') : '')),
      );
    const mount = mountOf(route);
    const strays = links
      .map((link) => pages.find((page) => address(page) === link))
      .filter((target) => target?.tenant === route.tenant && mountOf(target) !== mount);
    expect(strays, 'links to another mount of the same tenant').toEqual([]);
  });
}

/** The mount that a page belongs to: that of its tenant's landing pages which lies nearest above it. */
function mountOf({ tenant, host, path }: Route): string {
  const roots = pages
    .filter((page) => page.tenant === tenant && page.host === host && page.file === 'pages/index.md')
    .map(({ path }) => path.replace(/\/$/, ''))
    .filter((root) => path === root || path.startsWith(`${root}/`));
  return `${host}${roots.sort((a, b) => b.length - a.length)[0] ?? ''}`;
}
