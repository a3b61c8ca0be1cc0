/** The inquiry form: the complete text reaches the visitor's mail program, and no server. */
import type { Locator, Page } from '@playwright/test';
import { expectNoViolations } from '../../support/checks/axe.ts';
import { catchMail, handedOver } from '../../support/mail.ts';
import { stillness, visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

const AWKWARD = 'Jörg "Ø" O\'Neill & Söhne + 100% <b> #1? 🏠👩‍👩‍👧 = ok; a=b&c=d\\';
const LINES = [
  'First line: ä ö ü ß',
  '',
  '  “quoted” & ampersand',
  '—',
  '日本語, עברית',
  '%0A is no line break',
];

function parts(page: Page): { form: Locator; submit: Locator } {
  const form = page.locator('form').filter({ has: page.getByLabel('Your Name') });
  return { form, submit: form.getByRole('button') };
}

/** Fills in the required fields. */
async function fillRequired(form: Locator): Promise<void> {
  await form.getByLabel('Your Name').fill(AWKWARD);
  await form.getByLabel('Email').fill('joerg+test@example.com');
}

test.describe('with JavaScript', () => {
  test.beforeEach(async ({ page }) => {
    await catchMail(page);
    await visit(page, '/contact');
  });

  test('only name and email are required, and errors are beside their fields', async ({ page }) => {
    const { form, submit } = parts(page);
    const name = form.getByLabel('Your Name');
    const email = form.getByLabel('Email');
    await expect(form.locator(':required')).toHaveCount(2);

    await submit.click();
    await expect(name).toBeFocused();
    await expect(name).toHaveAccessibleDescription(/\S/);
    await expect(email).toHaveAccessibleDescription(/\S/);
    await expect(form.getByLabel('Company')).not.toHaveAttribute('aria-invalid', 'true');

    await name.fill('Ada');
    await email.fill('no address');
    await submit.click();
    await expect(name).not.toHaveAttribute('aria-invalid', 'true');
    await expect(email).toBeFocused();
    await expect(email).toHaveAttribute('aria-invalid', 'true');
    expect(await handedOver(page)).toEqual([]);

    await email.fill('ada@example.com');
    await expect(email).not.toHaveAttribute('aria-invalid', 'true');
    await submit.click();
    await expect.poll(() => handedOver(page)).toHaveLength(1);
  });

  test('every field is in the message on its own line, and no request is sent', async ({ page, watch }) => {
    const { form, submit } = parts(page);
    const before = watch.calls.length;
    await fillRequired(form);
    await form.getByLabel('Company').fill(AWKWARD);
    await form.getByLabel('Phone').fill('+1 (312) 555-0142');
    const chosen: Record<string, string> = {};
    for (const label of ['Project Type', 'Budget Range', 'Timeline']) {
      const select = form.getByLabel(label);
      await select.selectOption({ index: 1 });
      chosen[label] = await select.evaluate((element) =>
        element instanceof HTMLSelectElement ? (element.selectedOptions[0]?.text ?? '') : '',
      );
    }
    await form.getByLabel('Project Brief').fill(LINES.join('\n'));
    await submit.click();

    await expect.poll(() => handedOver(page)).toHaveLength(1);
    const [mail] = await handedOver(page);
    expect(mail?.to).toBe('hello@studio.example');
    expect(mail?.subject).not.toBe('');
    const expected = {
      'Your Name': AWKWARD,
      Email: 'joerg+test@example.com',
      Company: AWKWARD,
      Phone: '+1 (312) 555-0142',
      ...chosen,
    };
    const lines = mail?.body.split('\r\n') ?? [];
    for (const [label, value] of Object.entries(expected)) expect(lines).toContain(`${label}: ${value}`);
    expect(mail?.body).toContain(LINES.join('\r\n'));
    expect(mail?.body, 'line breaks other than CRLF').not.toMatch(/\r(?!\n)|(?<!\r)\n/);
    expect(watch.calls.slice(before)).toEqual([]);
  });

  test('fields left empty are left out', async ({ page }) => {
    const { form, submit } = parts(page);
    await fillRequired(form);
    await submit.click();
    await expect.poll(() => handedOver(page)).toHaveLength(1);
    const [mail] = await handedOver(page);
    expect(mail?.body.split('\r\n').filter((line) => line !== '')).toHaveLength(2);
  });

  test('the message can be copied and stays', async ({ page, context }) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const { form, submit } = parts(page);
    await page.clock.install();
    await fillRequired(form);
    await form.getByLabel('Project Brief').fill(LINES.join('\n'));
    await submit.click();

    const copy = page.getByRole('button', { name: /copy/i });
    await expect(copy).toBeVisible();
    await page.clock.fastForward('30:00');
    await copy.click();
    await expect(page.getByRole('status').filter({ hasText: /copied/i })).toBeVisible();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    const [mail] = await handedOver(page);
    expect(copied.replace(/\r\n/g, '\n')).toBe(mail?.body.replace(/\r\n/g, '\n'));
    // The typed text can be changed and sent again.
    await expect(form.getByLabel('Your Name')).toHaveValue(AWKWARD);
  });

  test('a message that is too long for a mail program is offered complete', async ({ page }) => {
    const { form, submit } = parts(page);
    const long = `${'Many words. '.repeat(2_000)}The end.`;
    await fillRequired(form);
    await form.getByLabel('Project Brief').fill(long);
    await submit.click();
    await expect(page.getByRole('button', { name: /copy/i })).toBeVisible();
    await expect(page.locator('textarea[readonly]')).toHaveValue(/The end\.$/);
    expect(await handedOver(page)).toEqual([]);
  });

  test('a message of 1900 encoded characters is handed over, and a longer one is not', async ({ page }) => {
    const { form, submit } = parts(page);
    const brief = form.getByLabel('Project Brief');
    const again = page.locator('.message-panel a[href*="body="]');
    await fillRequired(form);
    await brief.fill('a');
    await submit.click();
    const rest = 1900 - ((await again.getAttribute('href'))?.length ?? 0);
    await brief.fill('a'.repeat(1 + rest));
    await submit.click();
    await expect.poll(() => handedOver(page)).toHaveLength(2);
    await expect(again).toHaveAttribute('href', /^.{1900}$/);
    await brief.fill('a'.repeat(2 + rest));
    await submit.click();
    await expect(page.locator('.message-panel[data-state="long"]')).toBeVisible();
    expect(await handedOver(page)).toHaveLength(2);
  });

  test('errors and the message are accessible', async ({ page }) => {
    const { form, submit } = parts(page);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await form.getByLabel('Your Name').fill('');
      await submit.click();
      await stillness(page);
      await expectNoViolations(page, `errors, ${colorScheme}`);
      await fillRequired(form);
      await submit.click();
      await expect(page.getByRole('button', { name: /copy/i })).toBeVisible();
      await stillness(page);
      await expectNoViolations(page, `message, ${colorScheme}`);
    }
  });
});

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false });

  test('the form is a plain mailto form', async ({ page }) => {
    await page.goto('/contact');
    const { form, submit } = parts(page);
    await expect(form).toHaveAttribute('action', /^mailto:hello@studio\.example/);
    await expect(form).toHaveAttribute('method', 'post');
    await expect(form).toHaveAttribute('enctype', 'text/plain');
    await expect(form.locator(':required')).toHaveCount(2);
    await expect(form.getByLabel('Email')).toHaveAttribute('type', 'email');
    await expect(submit).toBeVisible();
  });

  test('the form without a server says so and sends nothing', async ({ page, watch }) => {
    await page.goto('/');
    const form = page.locator('form').filter({ has: page.getByLabel('First Name') });
    const before = watch.calls.length;
    await form.getByLabel('First Name').fill('Ada');
    await form.getByLabel('First Name').press('Enter');
    await form.getByRole('button').click();
    await expect(form.getByLabel('First Name')).toHaveValue('Ada');
    expect(watch.calls.slice(before)).toEqual([]);
    await expect(form.getByRole('link')).toHaveAttribute('href', /\/contact$/);
  });
});
