/** The consent notice: no cookies, an answer that stays on the device, and a link in the footer that opens it again. */
import type { Locator, Page } from '@playwright/test';
import { visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

function parts(page: Page): { notice: Locator; choices: Locator; opener: Locator } {
  const notice = page.getByRole('region').filter({ hasText: 'cookies' });
  return {
    notice,
    choices: notice.getByRole('button'),
    opener: page.getByRole('contentinfo').getByRole('button'),
  };
}

test('the first visit shows the notice and can use the page', async ({ page, context }) => {
  await visit(page, '/');
  const { notice } = parts(page);
  await expect(notice).toBeVisible();
  await expect(page.locator('body')).not.toHaveAttribute('inert');
  // The page behind the notice can be used.
  await page.getByRole('main').getByRole('link').first().click({ trial: true });
  expect(await context.cookies()).toEqual([]);
});

for (const { name, index } of [
  { name: 'the first choice', index: 0 },
  { name: 'the second choice', index: 1 },
]) {
  test(`${name} is stored on this device, and sets no cookie`, async ({ page, context }) => {
    await visit(page, '/');
    const { notice, choices } = parts(page);
    await choices.nth(index).click();
    await expect(notice).toBeHidden();

    for (const path of ['/', '/contact']) {
      await visit(page, path);
      await expect(notice).toBeHidden();
    }
    expect(await page.evaluate(() => localStorage.length)).toBe(1);
    expect(await context.cookies()).toEqual([]);
  });
}

test('the footer opens the notice again, and the focus moves and returns', async ({ page }) => {
  await visit(page, '/');
  const { notice, choices, opener } = parts(page);
  await choices.first().click();
  await expect(notice).toBeHidden();

  await opener.focus();
  await page.keyboard.press('Enter');
  await expect(notice).toBeVisible();
  await expect(notice).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(notice).toBeHidden();
  await expect(opener).toBeFocused();

  await opener.click();
  await choices.last().click();
  await expect(notice).toBeHidden();
  await visit(page, '/');
  await expect(notice).toBeHidden();
});

test('the answer lasts as long as the page if storage is blocked', async ({ page }) => {
  await page.addInitScript(() => {
    Object.defineProperty(window, 'localStorage', {
      get: () => {
        throw new DOMException('blocked', 'SecurityError');
      },
    });
  });
  await visit(page, '/');
  const { notice, choices } = parts(page);
  await choices.first().click();
  await expect(notice).toBeHidden();
});

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false });

  test('the notice and its links are hidden', async ({ page }) => {
    await page.goto('/');
    await expect(page.locator('[data-consent-open]')).toHaveCount(1);
    await expect(parts(page).notice).toHaveCount(0);
  });
});
