/** The header: flat at the top of the page, and a menu on narrow screens. */
import type { Locator, Page } from '@playwright/test';
import { expectNoViolations } from '../../support/checks/axe.ts';
import { loaded, stillness, visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

const PHONE = { width: 360, height: 800 };

function parts(page: Page): { header: Locator; button: Locator; links: Locator } {
  const header = page.getByRole('banner');
  return {
    header,
    button: header.locator('button[aria-controls]'),
    links: header.getByRole('navigation').getByRole('link'),
  };
}

test.describe('scrolling', () => {
  test('the header is flat at 20 px and scrolled at 21 px', async ({ page }) => {
    await visit(page, '/');
    const root = page.locator('html');
    const at = (top: number) => page.evaluate((top) => scrollTo({ top, behavior: 'instant' }), top);

    await expect(root).not.toHaveAttribute('data-scrolled');
    await at(21);
    await expect(root).toHaveAttribute('data-scrolled');
    await at(20);
    await expect(root).not.toHaveAttribute('data-scrolled');
  });

  test('the header is plain text at the top, and blurred paper with a shadow when scrolled', async ({
    page,
  }) => {
    await visit(page, '/');
    const header = page.locator('.site-header');
    await expect(header).toHaveCSS('background-color', 'rgba(0, 0, 0, 0)');
    await expect(header).toHaveCSS('box-shadow', 'none');

    await page.evaluate(() => scrollTo({ top: 400, behavior: 'instant' }));
    await expect(header).toHaveCSS('background-color', /(\/|,) 0?\.\d+\)$/);
    await expect(header).toHaveCSS('backdrop-filter', /blur/);
    await expect(header).not.toHaveCSS('box-shadow', 'none');
  });

  test('a page opened at a fragment is scrolled from the start', async ({ page }) => {
    await page.goto('/#contact');
    await expect(page.locator('html')).toHaveAttribute('data-scrolled');
    await expect(page.locator('.site-header')).not.toHaveCSS('box-shadow', 'none');
  });
});

test('a link to a fragment shows its part directly below the header', async ({ page }) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.setViewportSize(PHONE);
  for (const [path, part] of [
    ['/', 'contact'],
    ['/bluedoor', 'who'],
    ['/arnold', 'testimonials'],
  ] as const) {
    await page.goto(`${path}#${part}`);
    await loaded(page);
    const gap = await page.evaluate((id) => {
      const header = document.querySelector('.site-header')?.getBoundingClientRect().bottom ?? 0;
      return (document.getElementById(id)?.getBoundingClientRect().top ?? 0) - header;
    }, part);
    expect(gap, `${path}#${part}`).toBeGreaterThanOrEqual(0);
    expect(gap, `${path}#${part}`).toBeLessThan(60);
  }
});

test('only the current page is marked among the links', async ({ page }) => {
  for (const [path, marked] of [
    ['/projects', ['Projects']],
    ['/contact', ['Contact']],
    ['/', []],
    ['/about', []],
  ] as const) {
    await page.goto(path);
    const current = page.getByRole('banner').locator('[aria-current="page"]');
    await expect(current, path).toHaveText([...marked]);
    // The mark is visible, too.
    if (marked.length > 0) await expect(current).toHaveCSS('border-bottom-style', 'solid');
  }
});

test.describe('width', () => {
  test('the header has a menu button at 767 px and links at 768 px', async ({ page }) => {
    await page.setViewportSize({ width: 767, height: 800 });
    await visit(page, '/');
    const { button, links } = parts(page);
    await expect(button).toBeVisible();
    await expect(links.first()).toBeHidden();

    await page.setViewportSize({ width: 768, height: 800 });
    await expect(button).toBeHidden();
    await expect(links.first()).toBeVisible();
  });
});

test.describe('menu', () => {
  test.use({ viewport: PHONE });

  test('the button opens and closes the menu', async ({ page }) => {
    await visit(page, '/');
    const { button, links } = parts(page);
    await expect(button).toHaveAttribute('aria-expanded', 'false');

    await button.click();
    await expect(button).toHaveAttribute('aria-expanded', 'true');
    const panel = page.locator(`[id="${await button.getAttribute('aria-controls')}"]`);
    await expect(panel).toBeVisible();
    await expect(panel.getByRole('link')).toHaveCount(await links.count());

    await button.click();
    await expect(button).toHaveAttribute('aria-expanded', 'false');
    await expect(panel).toBeHidden();
  });

  test('a click on a link closes the menu', async ({ page }) => {
    await visit(page, '/');
    // Stays on the page, so that the menu closes and no new page loads.
    await page.evaluate(() => addEventListener('click', (event) => event.preventDefault()));
    const { button, links } = parts(page);
    await button.click();
    await links.first().click();
    await expect(button).toHaveAttribute('aria-expanded', 'false');
    await expect(links.first()).toBeHidden();
  });

  test('Escape closes the menu and returns the focus', async ({ page }) => {
    await visit(page, '/');
    const { button, links } = parts(page);
    await button.click();
    await links.last().focus();
    await page.keyboard.press('Escape');
    await expect(button).toHaveAttribute('aria-expanded', 'false');
    await expect(button).toBeFocused();
  });

  test('the keyboard opens the menu and follows a link', async ({ page }) => {
    await visit(page, '/');
    const { header, button, links } = parts(page);

    await page.keyboard.press('Tab');
    await expect(page.getByRole('link', { name: /skip/i })).toBeFocused();
    await page.keyboard.press('Tab');
    await expect(header.getByRole('link').first()).toBeFocused();
    await page.keyboard.press('Tab');
    await expect(button).toBeFocused();
    await page.keyboard.press('Enter');
    await expect(button).toHaveAttribute('aria-expanded', 'true');
    await page.keyboard.press('Tab');
    await expect(links.first()).toBeFocused();

    const target = await links
      .first()
      .evaluate((link) => (link instanceof HTMLAnchorElement ? link.href : ''));
    await page.keyboard.press('Enter');
    await page.waitForURL(target);
    await expect(page.locator('.site-header a[aria-current="page"]')).toHaveCount(1);
  });

  test('focus outside of the open menu closes it', async ({ page }) => {
    await visit(page, '/');
    const { button, links } = parts(page);
    await button.click();
    await links.last().focus();
    await page.keyboard.press('Tab');
    await expect(button).toHaveAttribute('aria-expanded', 'false');
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`the open menu is accessible (${colorScheme})`, async ({ page }) => {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await visit(page, '/');
      await parts(page).button.click();
      await stillness(page);
      await expectNoViolations(page, 'menu open');
    });
  }
});
