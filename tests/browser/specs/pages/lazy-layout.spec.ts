/** Content far below the view is laid out when it comes near, so that a slow phone shows a page sooner. */
import { expect, test } from '../../support/test.ts';

test.beforeEach(async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 640 });
  await page.goto('/bluedoor');
});

test('the end of a long page is laid out when it comes near', async ({ page }) => {
  const isLaidOut = () =>
    page.locator('.footer-name').evaluate((end) => end.checkVisibility({ contentVisibilityAuto: true }));
  expect(await isLaidOut()).toBe(false);
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await expect.poll(isLaidOut).toBe(true);
});

// During smooth scrolling, the layout of earlier content moves the target, and the browser stops too early.
for (const part of ['main', 'contentinfo'] as const) {
  test(`focus far down is in view: the last link of ${part}`, async ({ page }) => {
    const last = page.getByRole(part).getByRole('link').last();
    await last.focus();
    await expect(last).toBeFocused();
    await expect(last).toBeInViewport();
  });
}

test('a link to a place far down scrolls to it', async ({ page }) => {
  const link = page.getByRole('main').locator('a[href*="#"]').first();
  const { hash } = new URL((await link.getAttribute('href')) ?? '', page.url());
  await link.click();
  // The distance of `scroll-padding` from the top: below the header.
  const offset = () =>
    page.locator(hash).evaluate((place) => {
      const wanted = Number.parseFloat(getComputedStyle(document.documentElement).scrollPaddingBlockStart);
      return Math.abs(place.getBoundingClientRect().top - wanted);
    });
  await expect.poll(offset).toBeLessThan(2);
});
