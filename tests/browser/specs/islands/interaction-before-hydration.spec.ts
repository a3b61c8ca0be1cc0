/** The time between an interaction with an island and its hydration: no input of a visitor is lost. */
import { watchNext } from '../../support/events.ts';
import { holdBack } from '../../support/hold.ts';
import { catchMail, handedOver } from '../../support/mail.ts';
import { living, visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

const REACT = /\/runtime\.\w+\.js$/;

test.describe('the menu', () => {
  test.use({ viewport: { width: 360, height: 740 } });

  test('opens when its script arrives, after one press or three', async ({ page }) => {
    for (const presses of [1, 3]) {
      const release = await holdBack(page, REACT);
      await visit(page, '/about');
      const button = page.getByRole('banner').getByRole('button');
      for (let press = 0; press < presses; press += 1) await button.click();
      await expect(page.locator('row-island[name="Header"]')).toHaveAttribute('data-state', 'loading');
      await expect(button).toHaveAttribute('aria-expanded', 'false');
      release();
      await expect(button).toHaveAttribute('aria-expanded', 'true');
      await expect(page.getByRole('banner').getByRole('navigation')).toBeVisible();
      // From now on, a press takes effect at once.
      await button.click();
      await expect(button).toHaveAttribute('aria-expanded', 'false');
    }
  });

  test('opens by the keyboard, and by a click without a pointer', async ({ page }) => {
    await visit(page, '/about');
    const button = page.getByRole('banner').getByRole('button');
    await button.focus();
    await page.keyboard.press('Enter');
    await expect(button).toHaveAttribute('aria-expanded', 'true');

    await page.reload();
    // Like a screen reader.
    await page.waitForLoadState();
    await button.dispatchEvent('click');
    await expect(button).toHaveAttribute('aria-expanded', 'true');
  });

  test('a link is followed at once', async ({ page }) => {
    await page.setViewportSize({ width: 1280, height: 800 });
    // Intercepted files arrive too late for a view transition, which the browser would report.
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await holdBack(page, REACT);
    await visit(page, '/about');
    await page.getByRole('banner').getByRole('link', { name: 'Projects' }).click();
    await page.waitForURL('/projects');
  });
});

test('a form that is sent before its script arrives is sent by the script', async ({ page }) => {
  await catchMail(page);
  const release = await holdBack(page, REACT);
  await visit(page, '/contact');
  const form = page.locator('form').filter({ has: page.getByLabel('Your Name') });
  await form.getByLabel('Your Name').fill('Ada');
  await form.getByLabel('Email').fill('ada@example.com');
  await form.getByLabel('Email').press('Enter');
  expect(await handedOver(page)).toEqual([]);
  release();
  await expect.poll(() => handedOver(page)).toHaveLength(1);
  const [mail] = await handedOver(page);
  expect(mail?.body).toBe('Your Name: Ada\r\nEmail: ada@example.com');
});

test.describe('a script that does not arrive', () => {
  test.use({ tolerated: /net::ERR_FAILED|failed while loading|Failed to load resource/ });

  test('leaves the form to the browser', async ({ page }) => {
    await page.route(/\/InquiryForm\.\w+\.js$/, (route) => route.abort());
    await visit(page, '/contact');
    const form = page.locator('form').filter({ has: page.getByLabel('Your Name') });
    const prevented = await watchNext(page, 'submit');
    await form.getByLabel('Your Name').fill('Ada');
    await form.getByLabel('Email').fill('ada@example.com');
    await form.getByRole('button').click();
    expect(await prevented(), 'called off by a script').toBe(false);
  });
});

test('the loader shows the notice of the first visit, and the answer is stored after hydration', async ({
  page,
}) => {
  const release = await holdBack(page, REACT);
  await visit(page, '/privacy');
  const notice = page.getByRole('region', { name: 'Privacy choices' });
  await notice.getByRole('button').first().click();
  await expect(notice).toBeVisible();
  release();
  await expect(notice).toBeHidden();

  await visit(page, '/privacy');
  await expect(page.locator('html[data-loaded]')).toHaveCount(1);
  await expect(notice).toBeHidden();
  await expect(page.locator('row-island[name="Consent"]')).not.toHaveAttribute('data-state');
  await page.getByRole('contentinfo').getByRole('button').click();
  await living(page, 'Consent');
  await expect(notice).toBeFocused();
});

test('a toast appears, also after a press without a pointer', async ({ page }) => {
  await visit(page, '/');
  await page.getByRole('button', { name: 'Send Message' }).dispatchEvent('click');
  await expect(page.getByRole('region', { name: 'F8' }).getByRole('listitem')).toContainText('not connected');
});
