/**
 * The focus is always visible: at the magnifications of WCAG (200% and 400% of a window of 1280 by 800), with the
 * consent notice open, and in forced colours. Tests one page of each kind.
 */
import type { Page } from '@playwright/test';
import { sidewaysOverflow, unreachableLinks } from '../../support/checks/layout.ts';
import { arrive } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

const KINDS = [
  '/',
  '/about',
  '/contact',
  '/projects',
  '/blog?tag=mobile',
  '/blog/the-button-in-german',
  '/services/web-apps',
  '/work',
  '/work/acme-commerce',
  '/labs/realtime-collab',
  '/privacy-policy',
  '/arnold',
  '/givefive',
  '/fitgoat/support',
];

const ZOOMED = { width: 640, height: 400 };
const REFLOWED = { width: 320, height: 200 };

test.use({ viewport: ZOOMED, deviceScaleFactor: 2 });

for (const path of KINDS) {
  test(`${path} shows the focus at 200% and reflows at 400%`, async ({ page }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await arrive(page, path);
    await expect(page.locator('.consent')).toBeVisible();

    for (const [zoom, size] of [
      ['200%', ZOOMED],
      ['400%', REFLOWED],
    ] as const) {
      await page.setViewportSize(size);
      expect.soft(await sidewaysOverflow(page), `sideways scrolling at ${zoom}`).toEqual([]);
      expect.soft(await cutText(page), `text that is cut off at ${zoom}`).toEqual([]);
    }
    await page.setViewportSize(ZOOMED);
    expect.soft(await hiddenFocus(page), 'focus that cannot be seen at 200%').toEqual([]);
  });
}

test('the contact page shows the focus at 400%', async ({ page }) => {
  await page.setViewportSize(REFLOWED);
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await arrive(page, '/contact');
  expect(await hiddenFocus(page)).toEqual([]);
  expect(await unreachableLinks(page, 'main')).toEqual([]);
});

test('the skip link is visible with the focus, and skips the header', async ({ page }) => {
  await arrive(page, '/about');
  const skip = page.getByRole('link', { name: 'Skip to content' });
  await expect(skip).not.toBeInViewport();
  await page.keyboard.press('Tab');
  await expect(skip).toBeFocused();
  await expect(skip).toBeInViewport({ ratio: 1 });
  await page.keyboard.press('Enter');
  await expect(page.getByRole('main')).toBeFocused();
  await page.keyboard.press('Tab');
  await expect(page.getByRole('main').getByRole('link').first()).toBeFocused();
});

test('in forced colours no state is shown by a background alone', async ({ page }) => {
  await page.emulateMedia({ forcedColors: 'active', reducedMotion: 'reduce' });
  await page.setViewportSize({ width: 1280, height: 800 });
  for (const path of ['/', '/contact', '/about', '/blog?tag=mobile', '/arnold']) {
    await arrive(page, path);
    const edgeless = await page
      .locator('.button, .field-control, .call-sign, .toast, .consent, .plan')
      .evaluateAll((elements) =>
        elements
          .filter((element) => element.checkVisibility())
          .filter((element) => {
            const style = getComputedStyle(element);
            const edges = [style.borderBlockStartWidth, style.borderBlockEndWidth];
            return edges.every((edge) => edge === '0px') && style.textDecorationLine === 'none';
          })
          .map((element) => element.className),
      );
    expect.soft(edgeless, path).toEqual([]);
    // Current and chosen elements differ by more than a shadow, which forced colours remove.
    for (const current of await page
      .locator('.header-link[aria-current], .entry-filter a[aria-current]')
      .all()) {
      const line = await current.evaluate((element) => {
        const { textDecorationLine, textDecorationColor, borderBlockEndWidth } = getComputedStyle(element);
        return { underlined: textDecorationLine === 'underline', textDecorationColor, borderBlockEndWidth };
      });
      expect
        .soft(line.underlined || line.borderBlockEndWidth !== '0px', `${path}: the mark of the current`)
        .toBe(true);
    }
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    const outline = await page.evaluate(
      () => getComputedStyle(document.activeElement ?? document.body).outlineStyle,
    );
    expect.soft(outline, `${path}: the focus`).toBe('solid');
  }
});

/** Walks the page with the Tab key, and returns each element whose middle is out of view or covered. */
async function hiddenFocus(page: Page): Promise<string[]> {
  await page.evaluate(() => {
    scrollTo({ top: 0, behavior: 'instant' });
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  });
  const hidden: string[] = [];
  const seen = new Set<string>();
  for (;;) {
    await page.keyboard.press('Tab');
    const found = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      const { left, top, width, height } = element.getBoundingClientRect();
      const name = `${element.tagName.toLowerCase()}.${element.className} ${element.textContent?.trim().slice(0, 40)}`;
      const order = [...document.querySelectorAll('*')].indexOf(element);
      // An element larger than the screen cannot be completely visible: its edge is enough.
      const points = [0.5, 0.1, 0.9].map((part) =>
        document.elementFromPoint(left + width / 2, top + height * part),
      );
      // The title of an entry extends its link over the entry, and covers the entry's own link to the same page.
      const same = (hit: Element | null) =>
        element instanceof HTMLAnchorElement && hit?.closest('a')?.href === element.href;
      const visible = points.some(
        (hit) => hit && (element.contains(hit) || hit.contains(element) || same(hit)),
      );
      return { key: `${order}`, name, visible };
    });
    if (!found || seen.has(found.key)) return hidden;
    seen.add(found.key);
    if (!found.visible) hidden.push(found.name);
  }
}

/** Returns elements whose text is wider than the box that clips it. */
async function cutText(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll('main *, header *, footer *')]
      .filter((element) => {
        const { overflowX } = getComputedStyle(element);
        return overflowX === 'hidden' && element.scrollWidth > element.clientWidth + 1;
      })
      .filter(
        (element) =>
          !element.matches('.visually-hidden, .skyline, [aria-hidden="true"] *') && element.checkVisibility(),
      )
      .map((element) => `${element.tagName.toLowerCase()}.${element.className}`),
  );
}
