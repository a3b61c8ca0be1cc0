/** Going from page to page: at once, and nothing loaded before it is needed. */
import type { Page } from '@playwright/test';
import { islandsReady, visit } from '../support/settle.ts';
import { expect, test } from '../support/test.ts';

declare global {
  interface Window {
    /** What this document was told when it was shown. */
    shown: { persisted: boolean; travels: boolean }[];
  }
}

/** Scripts of islands that the page has fetched, by name. */
function islandScripts(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .map(({ name }) => name.match(/\/([A-Z]\w+)\.\w+\.js$/)?.[1] ?? '')
      .filter((name) => name !== ''),
  );
}

test.describe('loading', () => {
  test.use({ viewport: { width: 360, height: 640 } });

  test('a form is fetched when it comes near, and React blocks nothing', async ({ page }) => {
    for (const { path, form } of [
      { path: '/', form: 'ContactForm' },
      { path: '/contact', form: 'InquiryForm' },
    ]) {
      await page.goto(path);
      await expect(page.locator('row-island[name="Consent"]')).toHaveAttribute('data-state', 'ready');
      await expect(page.locator('row-island[name="Toaster"]')).toHaveAttribute('data-state', 'ready');
      expect(await islandScripts(page), path).not.toContain(form);

      await page.locator(`row-island[name="${form}"] form`).scrollIntoViewIfNeeded();
      await islandsReady(page);
      expect(await islandScripts(page), path).toContain(form);
    }
  });

  test('a page fetches only what stands on it, once', async ({ page }) => {
    await visit(page, '/privacy-policy');
    const standing = await page
      .locator('row-island')
      .evaluateAll((islands) => islands.map((island) => island.getAttribute('name')));
    expect((await islandScripts(page)).sort()).toEqual(standing.sort());
  });

  test('React is fetched while the page is read, on every kind of page', async ({ page }) => {
    for (const path of ['/', '/blog', '/privacy', '/bluedoor/support', '/services/web-apps']) {
      await page.goto(path);
      const early = page.locator('head link[rel="modulepreload"][href*="/runtime."]');
      await expect(early, path).toHaveCount(1);
    }
  });

  test('no script is waited for by the first paint', async ({ page }) => {
    for (const path of ['/', '/blog', '/contact']) {
      await page.goto(path);
      const blocking = await page.evaluate(() =>
        performance
          .getEntriesByType('resource')
          .filter((entry) => 'renderBlockingStatus' in entry && entry.renderBlockingStatus === 'blocking')
          .map(({ name }) => name),
      );
      expect(blocking, path).toEqual([expect.stringMatching(/\.css$/)]);
    }
  });
});

test.describe('between pages', () => {
  test.beforeEach(async ({ page }) => {
    await page.addInitScript(() => {
      window.shown = [];
      addEventListener('pagereveal', ({ viewTransition }) => {
        window.shown.push({ persisted: false, travels: viewTransition !== null });
      });
    });
  });

  test('a link is fetched when the pointer rests on it, by rules that the policy allows', async ({
    page,
  }) => {
    const session = await page.context().newCDPSession(page);
    const rules: { errors: string[]; text: string }[] = [];
    const fetched: { url: string; status: string }[] = [];
    session.on('Preload.ruleSetUpdated', ({ ruleSet }) =>
      rules.push({
        errors: [ruleSet.errorType ?? '', ruleSet.errorMessage ?? ''].filter(Boolean),
        text: ruleSet.sourceText,
      }),
    );
    session.on('Preload.prefetchStatusUpdated', ({ key, status }) => fetched.push({ url: key.url, status }));
    await session.send('Preload.enable');
    await visit(page, '/about');
    await expect.poll(() => rules).toHaveLength(1);
    expect(rules[0]?.errors).toEqual([]);
    expect(fetched, 'fetched before anyone showed an intent').toEqual([]);

    const link = page.getByRole('contentinfo').getByRole('link', { name: 'Labs' });
    const target = await link.evaluate((element) =>
      element instanceof HTMLAnchorElement ? element.href : '',
    );
    await link.hover();
    await expect.poll(() => fetched).toContainEqual({ url: target, status: 'Ready' });

    const transferred = page.waitForEvent('requestfinished', (request) => request.isNavigationRequest());
    await link.click();
    await page.waitForURL(target);
    await transferred;
    await expect.poll(() => fetched).toContainEqual({ url: target, status: 'Success' });
  });

  test('a house travels from the street to its own page', async ({ page }) => {
    await visit(page, '/projects');
    const names = (where: Page) =>
      where
        .locator('main .house-frame')
        .evaluateAll((frames) =>
          frames.map((frame) => getComputedStyle(frame).viewTransitionName).filter((name) => name !== 'none'),
        );
    const street = await names(page);
    expect(new Set(street).size, 'each house has a name of its own').toBe(street.length);
    await page.getByRole('main').getByRole('link', { name: 'Bluedoor' }).click();
    await page.waitForURL(/\/bluedoor$/);
    const shown = () => page.evaluate(() => window.shown);
    await expect.poll(shown).toEqual([{ persisted: false, travels: true }]);
    expect(await names(page)).toEqual(['house-bluedoor']);
    expect(street).toContain('house-bluedoor');
  });

  test('with motion reduced nothing travels', async ({ page }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await visit(page, '/projects');
    await page.getByRole('main').getByRole('link', { name: 'Bluedoor' }).click();
    await page.waitForURL(/\/bluedoor$/);
    expect(await page.evaluate(() => window.shown)).toEqual([{ persisted: false, travels: false }]);
  });
});
