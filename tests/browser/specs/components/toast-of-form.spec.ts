/** The toast of the home page's form, which is connected to no server and says so. */
import type { Locator, Page } from '@playwright/test';
import { expectNoViolations } from '../../support/checks/axe.ts';
import { stillness, visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

/** Milliseconds that a toast stays. */
const DURATION = 5_000;
const NOON = Date.parse('2025-08-20T12:00:00Z');

interface Parts {
  form: Locator;
  button: Locator;
  region: Locator;
  toast: Locator;
}

function parts(page: Page): Parts {
  const button = page.getByRole('button', { name: 'Send Message' });
  const region = page.getByRole('region', { name: 'F8' });
  return {
    form: page.locator('form').filter({ has: button }),
    button,
    region,
    toast: region.getByRole('listitem'),
  };
}

/** Opens the home page with a toast, and a clock that only the test moves. */
async function withToast(page: Page): Promise<Parts> {
  await page.clock.install({ time: NOON });
  await visit(page, '/');
  await page.clock.pauseAt(NOON + 3_600_000);
  const found = parts(page);
  await found.button.click();
  await expect(found.toast).toBeVisible();
  // Away from the toast, since the pointer would keep it.
  await page.mouse.move(1, 1);
  return found;
}

for (const width of [360, 768, 1280]) {
  test(`the toast covers nothing of the consent notice at ${width} px`, async ({ page }) => {
    await page.setViewportSize({ width, height: 740 });
    await visit(page, '/');
    const { button, toast } = parts(page);
    await button.click();
    await expect(toast).toBeVisible();
    const notice = await page.getByRole('region', { name: 'Privacy choices' }).boundingBox();
    const box = await toast.boundingBox();
    if (!notice || !box) throw new Error('both are to be seen');
    expect(box.y).toBeGreaterThan(0);
    expect(box.y + box.height).toBeLessThanOrEqual(notice.y);
  });
}

test('the button sends nothing and keeps typed text, and a toast says so', async ({ page, watch }) => {
  await visit(page, '/');
  const { form, button, toast } = parts(page);
  const typed = {
    'First Name': 'Jörg',
    'Last Name': "O'Neill",
    Email: 'jo@example.com',
    Message: 'One\nTwo & “three” 🏠',
  };
  for (const [label, value] of Object.entries(typed)) await form.getByLabel(label).fill(value);
  await form.getByLabel('Interest').selectOption('general');

  const url = page.url();
  const before = watch.calls.length;
  await form.getByLabel('First Name').press('Enter');
  await button.click();
  await expect(toast).toBeVisible();
  await expect(toast).toContainText('not connected');

  expect(watch.calls.slice(before)).toEqual([]);
  expect(page.url()).toBe(url);
  for (const [label, value] of Object.entries(typed)) await expect(form.getByLabel(label)).toHaveValue(value);
  await expect(form.getByLabel('Interest')).toHaveValue('general');
});

test('the toast is announced and offers the inquiry form', async ({ page }) => {
  await visit(page, '/');
  const { button, toast } = parts(page);
  await button.click();
  await expect(page.getByRole('status').filter({ hasText: 'not connected' })).not.toHaveCount(0);
  await toast.getByRole('link').click();
  await page.waitForURL('/contact');
});

test('the toast stays for 5000 ms', async ({ page }) => {
  const { toast } = await withToast(page);
  await page.clock.runFor(DURATION - 1);
  await expect(toast).toBeVisible();
  await expect(toast).toHaveAttribute('data-state', 'open');
  await page.clock.runFor(1);
  await expect(toast).toHaveCount(0);
});

test('the toast stays while the pointer is over it', async ({ page }) => {
  const { toast } = await withToast(page);
  await toast.hover();
  await page.clock.runFor(4 * DURATION);
  await expect(toast).toBeVisible();
  await page.mouse.move(1, 1);
  await page.clock.runFor(DURATION + 100);
  await expect(toast).toHaveCount(0);
});

test('the toast stays while it has the focus', async ({ page }) => {
  const { toast, button } = await withToast(page);
  await toast.getByRole('link').focus();
  await page.clock.runFor(4 * DURATION);
  await expect(toast).toBeVisible();
  await button.focus();
  await page.clock.runFor(DURATION);
  await expect(toast).toHaveCount(0);
});

test('at most one toast is shown', async ({ page }) => {
  const { button, toast } = await withToast(page);
  await button.click();
  await button.click();
  await expect(toast).toHaveCount(1);
});

test('F8 moves the focus to the toast, and Escape dismisses the toast', async ({ page }) => {
  const { toast, region } = await withToast(page);
  await page.keyboard.press('F8');
  await expect(region.getByRole('list')).toBeFocused();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Escape');
  await page.clock.runFor(100);
  await expect(toast).toHaveCount(0);
});

test('the button of the toast dismisses it', async ({ page }) => {
  const { toast } = await withToast(page);
  await toast.getByRole('button').click();
  await expect(toast).toHaveCount(0);
});

for (const { distance, left } of [
  { distance: 50, left: 1 },
  { distance: 51, left: 0 },
]) {
  test(`a swipe of ${distance} px to the right leaves ${left} toasts`, async ({ page }) => {
    const { toast } = await withToast(page);
    const title = await toast.getByText('not connected').first().boundingBox();
    if (!title) throw new Error('the toast has no title to swipe');
    const [x, y] = [Math.ceil(title.x) + 5, Math.ceil(title.y) + 5];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + distance, y, { steps: 10 });
    await page.mouse.up();
    await expect(toast).toHaveCount(left);
  });
}

for (const colorScheme of ['light', 'dark'] as const) {
  test(`the toast is accessible (${colorScheme})`, async ({ page }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    const { toast } = await withToast(page);
    // axe needs a running clock; a toast under the pointer stays.
    await toast.hover();
    await page.clock.resume();
    await stillness(page);
    await expectNoViolations(page, 'toast shown');
    await expect(toast).toBeVisible();
  });
}
