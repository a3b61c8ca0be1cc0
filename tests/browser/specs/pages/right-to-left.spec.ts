/** A site in Arabic and English in both themes: its Arabic pages are laid out as its English ones, mirrored. */
import type { ChildProcess } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator } from '@playwright/test';
import { expectNoViolations } from '../../support/checks/axe.ts';
import { sidewaysOverflow } from '../../support/checks/layout.ts';
import { repository } from '../../support/environment.ts';
import { serve, stop } from '../../support/program.ts';
import { visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

// The browser reports the status of a missing page.
test.use({ tolerated: /404/ });

/** A page with a form that shows a toast. */
const TOAST = `---
title: نموذج
sections:
  - kind: form
    title: نموذج
    name: sample
    send: nothing
    submit: إرسال
    fields: [{name: name, label: الاسم}]
    notice: {title: لم يُرسل شيء, text: هذا النموذج غير متصل.}
---
`;

const PAGES = ['/', '/about', '/blog', '/blog/calm-sea', '/contact', '/terms', '/none'];

/** Returns the spaces between an element and the edges of the page: where lines begin, and where lines end. */
async function insets(element: Locator): Promise<{ start: number; end: number }> {
  return element.evaluate((element) => {
    const { left, right } = element.getBoundingClientRect();
    const [before, after] = [left, document.documentElement.clientWidth - right].map(Math.round) as [
      number,
      number,
    ];
    const isRightToLeft = getComputedStyle(document.documentElement).direction === 'rtl';
    return isRightToLeft ? { start: after, end: before } : { start: before, end: after };
  });
}

for (const theme of ['base', 'plain'])
  test.describe(`in the theme ${theme}`, () => {
    test.describe.configure({ mode: 'serial' });

    let folder: string;
    let origin: string;
    let server: ChildProcess;

    test.beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'rowhouse-arabic-'));
      cpSync(join(repository, 'tests/fixtures/arabic'), folder, { recursive: true });
      const manifest = join(folder, 'tenants/mawj/tenant.yaml');
      const text = readFileSync(manifest, 'utf8');
      writeFileSync(manifest, text.replace('theme: base', `theme: ${theme}`));
      if (theme === 'base') writeFileSync(join(folder, 'tenants/mawj/pages/form.md'), TOAST);
      [server, origin] = await serve(folder);
    });

    test.afterAll(async () => {
      await stop(server);
      rmSync(folder, { recursive: true });
    });

    for (const width of [360, 768, 1280])
      test(`no Arabic page is wider than ${width} px`, async ({ page }) => {
        await page.setViewportSize({ width, height: 800 });
        for (const path of PAGES) {
          await page.goto(origin + path);
          expect(await sidewaysOverflow(page), path).toEqual([]);
        }
      });

    test('logo, headings and text begin at the right, and the navigation ends at the left', async ({
      page,
    }) => {
      await page.setViewportSize({ width: 1280, height: 800 });
      const measured = [];
      for (const path of ['/about', '/en/about']) {
        await visit(page, origin + path);
        const banner = page.getByRole('banner').first();
        const navigation = await insets(banner.getByRole('navigation'));
        const places = [
          banner.getByRole('link').first(),
          page.locator('main').getByRole('navigation').first(),
          page.locator('h1'),
          page.locator('.prose').first(),
          page.getByRole('contentinfo').locator('address'),
        ];
        const starts = await Promise.all(places.map(async (place) => (await insets(place)).start));
        // Letters of another script are not as wide, so only one edge is the same.
        measured.push([navigation.end, ...starts]);
        expect(navigation.start, 'the navigation is at the other side').toBeGreaterThan(640);
      }
      const [arabic, english] = measured;
      expect(arabic).toEqual(english);
    });

    test('code, addresses and telephone numbers are written from left to right', async ({ page }) => {
      const directions = (selector: string) =>
        page.locator(selector).evaluateAll((elements) =>
          elements.map((element) => {
            const { direction, unicodeBidi } = getComputedStyle(element);
            return unicodeBidi === 'plaintext' ? unicodeBidi : direction;
          }),
        );
      await page.goto(`${origin}/about`);
      expect(new Set(await directions('main :is(code, pre)'))).toEqual(new Set(['ltr']));
      expect(new Set(await directions('.prose :is([href^="mailto:"], [href^="tel:"])'))).toEqual(
        new Set(['plaintext']),
      );
      await page.goto(`${origin}/contact`);
      expect(await directions('[type="email"], [type="tel"]')).toEqual(['ltr', 'ltr']);
    });

    test('an Arabic page has no violation of axe', async ({ page }) => {
      for (const path of ['/', '/about', '/contact']) {
        await visit(page, origin + path);
        await expectNoViolations(page, path);
      }
    });

    if (theme === 'base') {
      test('a toast is swiped to the left', async ({ page }) => {
        await visit(page, `${origin}/form`);
        await page.getByRole('button', { name: 'إرسال' }).click();
        const toast = page.getByRole('region', { name: 'F8' }).getByRole('listitem');
        for (const { distance, left } of [
          { distance: 60, left: 1 },
          { distance: -60, left: 0 },
        ]) {
          const box = await toast.getByText('لم يُرسل شيء').first().boundingBox();
          if (!box) throw new Error('the toast has no title to swipe');
          const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
          await page.mouse.move(x, y);
          await page.mouse.down();
          await page.mouse.move(x + distance, y, { steps: 10 });
          await page.mouse.up();
          await expect(toast).toHaveCount(left);
        }
      });

      test('arrows point to the left, and the pointer moves them further', async ({ page }) => {
        await page.emulateMedia({ reducedMotion: 'no-preference' });
        await visit(page, `${origin}/blog`);
        const entry = page.locator('.entry').first();
        const arrow = entry.locator('.entry-more .icon');
        await expect(arrow).toHaveCSS('scale', '-1 1');
        await entry.hover();
        await expect(arrow).toHaveCSS('translate', '-6px');
      });
    }
  });
