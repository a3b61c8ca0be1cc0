/** A page that a translator or an extension has changed before its islands live: no press and no typed text is lost. */
import type { Page } from '@playwright/test';
import { holdBack } from '../support/hold.ts';
import { living, visit } from '../support/settle.ts';
import { expect, test } from '../support/test.ts';

const REACT = /\/runtime\.\w+\.js$/;

// React says that it rendered an island anew.
test.use({ tolerated: /did not match its markup/ });

/** Does what browsers' translators do: each text moves into `<font><font>`. */
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

test('a translated form keeps what was typed before and while its script comes', async ({ page }) => {
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

test('neither skip link nor notices are on paper', async ({ page }) => {
  await visit(page, '/');
  await page.emulateMedia({ media: 'print' });
  for (const part of ['.skip-link', '.consent']) await expect(page.locator(part)).toBeHidden();
});
