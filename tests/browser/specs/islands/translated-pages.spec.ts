/** Pages that a translator or an extension has changed before hydration: no press and no typed text is lost. */
import type { Locator, Page } from '@playwright/test';
import { holdBack, holdReact } from '../../support/hold.ts';
import { living, turnToIslands, visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

const REACT = /\/runtime\.\w+\.js$/;

// React reports that it rendered an island again.
test.use({ tolerated: /did not match its markup/ });

/** Changes the page as browsers' translators do: each text moves into `<font><font>`. */
async function translate(page: Page): Promise<void> {
  await page.evaluate(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const texts: Text[] = [];
    while (walker.nextNode()) texts.push(walker.currentNode as Text);
    for (const text of texts) {
      const parent = text.parentElement?.localName ?? '';
      if (!text.data.trim() || ['script', 'style', 'option', 'textarea'].includes(parent)) continue;
      const font = document.createElement('font');
      const inner = document.createElement('font');
      inner.textContent = `«${text.data}»`;
      font.append(inner);
      text.replaceWith(font);
    }
  });
}

test('one press on a translated notice closes it', async ({ page }) => {
  await visit(page, '/');
  await translate(page);
  const notice = page.locator('row-island[name="Consent"] section');
  await expect(notice).toBeVisible();
  await notice.getByRole('button').first().click();
  await expect(notice).toBeHidden();
});

const PRESSES: Record<string, Record<'begin' | 'end', (page: Page) => Promise<void>>> = {
  mouse: { begin: (page) => page.mouse.down(), end: (page) => page.mouse.up() },
  'space bar': { begin: (page) => page.keyboard.down(' '), end: (page) => page.keyboard.up(' ') },
};

for (const [by, { begin, end }] of Object.entries(PRESSES)) {
  test.describe(`a press by ${by} on a translated menu counts once`, () => {
    test.use({ viewport: { width: 360, height: 740 } });

    /** Returns the menu's button, with the pointer and the focus on it. */
    async function translatedMenu(page: Page) {
      await visit(page, '/about');
      await translate(page);
      const button = page.getByRole('banner').getByRole('button');
      await button.hover();
      await button.focus();
      return button;
    }

    /** Checks that the menu is open, and that the next press closes it: no press is repeated. */
    async function isPressedOnce(page: Page, button: Locator) {
      await living(page, 'Header');
      await expect(button).toHaveAttribute('aria-expanded', 'true');
      await button.click();
      await expect(button).toHaveAttribute('aria-expanded', 'false');
    }

    test('that begins before its script arrives and ends after', async ({ page }) => {
      const release = await holdBack(page, REACT);
      const button = await translatedMenu(page);
      await begin(page);
      release();
      await living(page, 'Header');
      await expect(button).toHaveAttribute('aria-expanded', 'false');
      await end(page);
      await isPressedOnce(page, button);
    });

    test('that begins before its script arrives and ends during hydration', async ({ page }) => {
      const release = await holdBack(page, REACT);
      const react = await holdReact(page);
      const button = await translatedMenu(page);
      await begin(page);
      release();
      await react.held();
      await end(page);
      await react.release();
      await isPressedOnce(page, button);
    });

    test('that begins during hydration and ends after', async ({ page }) => {
      const react = await holdReact(page);
      const button = await translatedMenu(page);
      await turnToIslands(page);
      await react.held();
      await begin(page);
      await react.release();
      await living(page, 'Header');
      await end(page);
      await isPressedOnce(page, button);
    });

    test('that begins and ends during hydration', async ({ page }) => {
      const react = await holdReact(page);
      const button = await translatedMenu(page);
      await turnToIslands(page);
      await react.held();
      await begin(page);
      await end(page);
      await react.release();
      await isPressedOnce(page, button);
    });

    test('that begins and ends after hydration', async ({ page }) => {
      const button = await translatedMenu(page);
      await turnToIslands(page);
      await living(page, 'Header');
      await begin(page);
      await end(page);
      await isPressedOnce(page, button);
    });
  });
}

test('the Enter key on a translated menu counts once during hydration', async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  const react = await holdReact(page);
  await visit(page, '/about');
  await translate(page);
  const button = page.getByRole('banner').getByRole('button');
  await button.focus();
  await react.held();
  await page.keyboard.press('Enter');
  await react.release();
  await living(page, 'Header');
  await expect(button).toHaveAttribute('aria-expanded', 'true');
});

test('a field that is pressed during hydration takes the typed text', async ({ page }) => {
  const react = await holdReact(page);
  await visit(page, '/contact');
  await translate(page);
  const field = page.locator('row-island[name="InquiryForm"] form input').first();
  await turnToIslands(page);
  await react.held();
  await field.click();
  await page.keyboard.type('Ada');
  await react.release();
  await living(page, 'InquiryForm');
  await page.keyboard.type(' L.');
  await expect(field).toHaveValue('Ada L.');
});

test('a press that ends beside its control does not count', async ({ page }) => {
  const release = await holdBack(page, REACT);
  await visit(page, '/');
  await translate(page);
  const notice = page.locator('row-island[name="Consent"] section');
  await notice.getByRole('button').first().hover();
  await page.mouse.down();
  release();
  await living(page, 'Consent');
  await notice.getByRole('heading').hover();
  await page.mouse.up();
  await notice.getByRole('heading').click();
  await expect(notice).toBeVisible();
});

test('a translated form keeps text typed before and during loading', async ({ page }) => {
  const release = await holdBack(page, REACT);
  await visit(page, '/contact');
  await translate(page);
  const form = page.locator('row-island[name="InquiryForm"] form');
  const [name, message] = [form.locator('input').first(), form.locator('textarea').first()];
  await name.fill('Ada');
  await message.pressSequentially('Two words');
  release();
  await living(page, 'InquiryForm');
  await expect(name).toHaveValue('Ada');
  await expect(message).toHaveValue('Two words');
  await expect(message).toBeFocused();
  await page.keyboard.type(' more');
  await expect(message).toHaveValue('Two words more');
});

test('skip link and notices are not printed', async ({ page }) => {
  await visit(page, '/');
  await page.emulateMedia({ media: 'print' });
  for (const part of ['.skip-link', '.consent']) await expect(page.locator(part)).toBeHidden();
});
