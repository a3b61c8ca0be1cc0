/** Content and navigation are complete without JavaScript: one page of each kind on a phone, with scripts off. */
import { sidewaysOverflow, unreachableLinks, unseenText } from '../../support/checks/layout.ts';
import { address, label, samples } from '../../support/routes.ts';
import { expect, test } from '../../support/test.ts';

test.use({ javaScriptEnabled: false, viewport: { width: 360, height: 800 } });

for (const route of samples) {
  test(`${label(route)} is complete without JavaScript`, async ({ page }) => {
    await page.goto(address(route));
    await expect(page.getByRole('main').getByRole('heading', { level: 1 })).toBeVisible();
    expect(await unseenText(page, 'main'), 'unseen text').toEqual([]);
    for (const part of ['banner', 'contentinfo'] as const) {
      await expect(page.getByRole(part).getByRole('link').first()).toBeVisible();
    }
    expect(await unreachableLinks(page, 'header'), 'unreachable links in the header').toEqual([]);
    expect(await unreachableLinks(page, 'footer'), 'unreachable links in the footer').toEqual([]);
    expect(await sidewaysOverflow(page), 'sideways scrolling').toEqual([]);
  });
}
