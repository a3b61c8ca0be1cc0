/**
 * The information for a screen reader during keyboard use: the accessibility tree of the header, the menu, both forms,
 * the toast and the consent notice.
 */
import type { Locator, Page } from '@playwright/test';
import { catchMail, handedOver } from '../../support/mail.ts';
import { visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

/** Presses Tab until `target` has the focus. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let step = 0; step < 60; step += 1) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  await expect(target, 'reached with the tab key').toBeFocused();
}

test('the header is announced with its links', async ({ page }) => {
  await visit(page, '/projects');
  await expect(page.getByRole('banner')).toMatchAriaSnapshot(`
    - banner:
      - link "Halsted Studio":
        - /url: /
      - navigation "Menu":
        - list:
          - listitem:
            - link "Projects":
              - /url: /projects
          - listitem:
            - link "Contact":
              - /url: /contact
  `);
});

test.describe('on a phone', () => {
  test.use({ viewport: { width: 360, height: 740 } });

  test('the menu is announced open and closed', async ({ page }) => {
    await visit(page, '/projects');
    const header = page.getByRole('banner');
    await expect(header).toMatchAriaSnapshot(`
      - banner:
        - link "Halsted Studio"
        - button "Menu" [expanded=false]
    `);
    await tabTo(page, header.getByRole('button'));
    await page.keyboard.press('Space');
    await expect(header).toMatchAriaSnapshot(`
      - banner:
        - link "Halsted Studio"
        - button "Close" [expanded]
        - navigation "Menu":
          - list:
            - listitem:
              - link "Projects"
            - listitem:
              - link "Contact"
    `);
    await tabTo(page, header.getByRole('link', { name: 'Contact' }));
    await page.keyboard.press('Escape');
    await expect(header.getByRole('button', { name: 'Menu', expanded: false })).toBeFocused();
    await expect(header.getByRole('navigation')).toHaveCount(0);
  });
});

test('the inquiry form is announced with its errors and its message', async ({ page }) => {
  await catchMail(page);
  await visit(page, '/contact');
  const form = page.locator('form');
  await expect(form).toMatchAriaSnapshot(`
    - text: Your Name
    - textbox "Your Name"
    - text: Company
    - textbox "Company"
    - text: Email
    - textbox "Email"
    - text: Phone
    - textbox "Phone"
    - text: Project Type
    - combobox "Project Type":
      - option "Select" [selected]
      - option "Web App"
      - option "Mobile App"
      - option "TV App"
      - option "Game"
      - option "Other"
    - text: Budget Range
    - combobox "Budget Range":
      - option "Select" [selected]
      - option "Under $25k"
      - option "$25k–$75k"
      - option "Above $75k"
    - text: Timeline
    - combobox "Timeline":
      - option "Select" [selected]
      - option "ASAP"
      - option "1-3 months"
      - option "3-6 months"
      - option "6+ months"
    - text: Project Brief
    - textbox "Project Brief"
    - paragraph:
      - button "Send Inquiry"
  `);
  const name = form.getByLabel('Your Name');
  const submit = form.getByRole('button');
  await tabTo(page, submit);
  await page.keyboard.press('Enter');
  await expect(name).toBeFocused();
  await expect(name).toHaveAccessibleDescription('Please fill this in.');
  await expect(name).toHaveAttribute('aria-invalid', 'true');
  await expect(form).toMatchAriaSnapshot(`
    - textbox "Your Name"
    - paragraph: Please fill this in.
    - text: Email
    - textbox "Email"
    - paragraph: Please fill this in.
  `);

  await page.keyboard.type('Ada');
  await tabTo(page, form.getByLabel('Email'));
  await page.keyboard.type('ada@example.com');
  await tabTo(page, form.getByLabel('Project Type'));
  await page.keyboard.press('w');
  await expect(form.getByLabel('Project Type')).toHaveValue('web');
  await tabTo(page, submit);
  await page.keyboard.press('Space');
  const panel = page.getByRole('region', { name: 'Your mail program should be open' });
  await expect(panel.getByRole('heading')).toBeFocused();
  expect((await handedOver(page)).map(({ body }) => body)).toEqual([
    'Your Name: Ada\r\nEmail: ada@example.com\r\nProject Type: Web App',
  ]);
  await expect(panel).toMatchAriaSnapshot(`
    - region "Your mail program should be open":
      - heading "Your mail program should be open" [level=3]
      - paragraph:
        - text: /If no program opened, copy the message and send it yourself/
        - link "hello@studio.example"
      - text: Your message
      - textbox "Your message": /Ada/
      - paragraph:
        - button "Copy the message"
        - link "Open the mail program again"
  `);
  // The live region exists before its text; otherwise the text might not be announced.
  await expect(panel.getByRole('status')).toBeVisible();
  await tabTo(page, panel.getByRole('button', { name: 'Copy the message' }));
  await page.keyboard.press('Enter');
  await expect(panel.getByRole('status')).toHaveText(/copied|selected/);
});

test('the contact form is announced with its toast', async ({ page }) => {
  await visit(page, '/');
  const form = page.locator('#contact form');
  await expect(form).toMatchAriaSnapshot(`
    - text: First Name
    - textbox "First Name"
    - text: Last Name
    - textbox "Last Name"
    - text: Email
    - textbox "Email"
    - text: Interest
    - combobox "Interest":
      - option "Select an option" [selected]
      - option "Space Station"
      - option "Goldbrick"
      - option "Numeral"
      - option "General Inquiry"
    - text: Message
    - textbox "Message"
    - paragraph:
      - button "Send Message"
  `);
  await form.getByLabel('First Name').focus();
  await tabTo(page, form.getByRole('button'));
  await page.keyboard.press('Enter');
  const region = page.getByRole('region', { name: 'Notifications (F8)' });
  await expect(region).toMatchAriaSnapshot(`
    - region "Notifications (F8)":
      - list:
        - listitem:
          - text: /This form is not connected Nothing was sent/
          - link "Open the inquiry form":
            - /url: /contact
          - button "Dismiss"
  `);
  await expect(page.getByRole('status').filter({ hasText: 'This form is not connected' })).not.toHaveCount(0);
  await page.keyboard.press('F8');
  await expect(region.getByRole('list')).toBeFocused();
  await tabTo(page, region.getByRole('button', { name: 'Dismiss' }));
  await page.keyboard.press('Enter');
  await expect(region.getByRole('listitem')).toHaveCount(0);
});

test('the consent notice is announced with its buttons', async ({ page }) => {
  await visit(page, '/about');
  const notice = page.getByRole('region', { name: 'Privacy choices' });
  await expect(notice).toMatchAriaSnapshot(`
    - region "Privacy choices":
      - heading "No cookies here" [level=2]
      - paragraph: /stays on this device/
      - paragraph:
        - button "All right"
        - button "No, thank you"
  `);
  await page.getByRole('contentinfo').getByRole('button', { name: 'Privacy choices' }).focus();
  await tabTo(page, notice.getByRole('button', { name: 'No, thank you' }));
  await page.keyboard.press('Enter');
  await expect(notice).toBeHidden();
  await page.getByRole('contentinfo').getByRole('button', { name: 'Privacy choices' }).focus();
  await page.keyboard.press('Space');
  await expect(notice).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(notice).toBeHidden();
  await expect(page.getByRole('contentinfo').getByRole('button', { name: 'Privacy choices' })).toBeFocused();
});
