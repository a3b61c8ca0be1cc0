/** Navigation between pages: immediate, and no resource is loaded before it is needed. */
import type { Page } from '@playwright/test';
import { holdLoader } from '../../support/hold.ts';
import { layOutAll } from '../../support/checks/layout.ts';
import { allLiving, loaded, turnToIslands, visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

declare global {
  interface Window {
    /** The events of this document when it was shown. */
    shown: { persisted: boolean; travels: boolean }[];
  }
}

/** A script that the page requested. */
interface Script {
  name: string;
  /** The start of the request, in milliseconds since the navigation. */
  start: number;
  /** Bytes sent over the network. */
  transferred: number;
}

function scripts(page: Page): Promise<Script[]> {
  return page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .filter((entry) => entry instanceof PerformanceResourceTiming)
      .filter(({ name }) => name.endsWith('.js'))
      .map(({ name, startTime, transferSize }) => ({
        name: name.replace(/.*\//, ''),
        start: startTime,
        transferred: transferSize,
      })),
  );
}

/** Returns the number of elements of each style recalculation, from a trace. */
function styledAnew(trace: Buffer): number[] {
  const { traceEvents } = JSON.parse(trace.toString()) as {
    traceEvents: { name: string; args: { elementCount?: number } }[];
  };
  return traceEvents
    .filter(({ name }) => name === 'UpdateLayoutTree')
    .map(({ args }) => args.elementCount ?? 0);
}

/** Whether the page is complete except for its scripts. */
const isComplete = () => document.readyState !== 'loading';

/** Returns the time of the first paint in milliseconds since the navigation, or 0 before it. */
const firstPaint = (page: Page) =>
  page.evaluate(() => performance.getEntriesByName('first-paint')[0]?.startTime ?? 0);

/** A page of each kind. */
const KINDS = ['/', '/blog', '/contact', '/privacy', '/services/web-apps', '/bluedoor', '/bluedoor/support'];

test.describe('loading', () => {
  test('a page requests no script until it has loaded', async ({ page }) => {
    for (const path of KINDS) {
      await visit(page, path);
      const load = await page.evaluate(
        () => performance.getEntriesByType('navigation').map((entry) => entry.toJSON().loadEventStart)[0],
      );
      await expect.poll(async () => (await scripts(page)).length, path).toBeGreaterThan(0);
      for (const { name, start } of await scripts(page)) expect(start, name).toBeGreaterThanOrEqual(load);
    }
  });

  for (const path of ['/', '/contact', '/about', '/bluedoor']) {
    test(`the loader on ${path} does not change the styles of other elements`, async ({ page, browser }) => {
      const release = await holdLoader(page);
      await page.goto(path, { waitUntil: 'commit' });
      await expect.poll(() => page.evaluate(isComplete)).toBe(true);
      // Otherwise, elements far below the view get their first styles with the first frame, which waits for the loader.
      await layOutAll(page);
      // The first layout requests the fonts. All elements are styled again when the fonts arrive, or when the tenth of
      // a second for optional fonts is over (CSS Fonts Level 4, `font-display`).
      await page.evaluate(async () => {
        const layOut = () => document.body.getBoundingClientRect();
        layOut();
        await document.fonts.ready;
        await new Promise((done) => setTimeout(done, 200));
        layOut();
      });
      await browser.startTracing(page, { categories: ['devtools.timeline'] });
      release();
      await expect(page.locator('.consent')).toBeVisible();
      await loaded(page);
      const styled = styledAnew(await browser.stopTracing());
      expect(styled.length).toBeGreaterThan(0);
      // Also on pages where the houses light up.
      const elements = await page.locator('*').count();
      expect(Math.max(...styled)).toBeLessThan(elements / 2);
    });
  }

  test('nothing is painted before the loader has marked the page', async ({ page }) => {
    const release = await holdLoader(page);
    await page.goto('/privacy', { waitUntil: 'commit' });
    await expect.poll(() => page.evaluate(isComplete)).toBe(true);
    // There was time to paint many times.
    const held = await page.evaluate(
      () => new Promise<number>((tell) => setTimeout(() => tell(performance.now()), 500)),
    );
    release();
    await expect.poll(() => firstPaint(page)).toBeGreaterThan(held);
    await expect(page.locator('.consent')).toBeVisible();
  });

  test('reading hydrates no island and compiles no script', async ({ page }) => {
    for (const path of KINDS) {
      await visit(page, path);
      await expect(page.locator('head link[rel="prefetch"][href*="/runtime."]'), path).toHaveCount(1);
      await expect(page.locator('head link[rel="modulepreload"]'), path).toHaveCount(0);
      await expect(page.locator('row-island[data-state]'), path).toHaveCount(0);
    }
  });

  for (const path of ['/contact', '/privacy-policy']) {
    test(`modules for the islands of ${path} are prefetched once, and no others`, async ({ page }) => {
      await visit(page, path);
      const ahead = await page
        .locator('head link[media="not all"]')
        .evaluateAll((links) => links.map((link) => link.getAttribute('href')?.replace(/.*\//, '') ?? ''));
      const transferred = async () =>
        (await scripts(page)).filter((script) => script.transferred > 0).map(({ name }) => name);
      await expect.poll(async () => (await transferred()).sort()).toEqual(ahead.sort());
      await turnToIslands(page);
      await allLiving(page);

      // The module of toasts is not among them: the toaster requests it.
      expect((await transferred()).filter((name) => ahead.includes(name)).sort()).toEqual(ahead);
      const standing = await page
        .locator('row-island')
        .evaluateAll((islands) => islands.map((island) => `${island.getAttribute('name')}`));
      expect(ahead.flatMap((name) => name.match(/^[A-Z]\w+/) ?? []).sort()).toEqual(standing.sort());
    });
  }

  test('the first paint waits only for the page itself', async ({ page }) => {
    for (const path of ['/', '/blog', '/contact']) {
      await page.goto(path);
      const blocking = await page.evaluate(() =>
        performance
          .getEntriesByType('resource')
          .filter((entry) => 'renderBlockingStatus' in entry && entry.renderBlockingStatus === 'blocking')
          .map(({ name }) => name),
      );
      expect(blocking, path).toEqual([]);
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

  test('a link is prefetched while the pointer rests on it, by rules that the policy allows', async ({
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

  test('the drawing of a tenant moves from the list to its own page', async ({ page }) => {
    await visit(page, '/projects');
    const names = (where: Page) =>
      where
        .locator('main .house-frame')
        .evaluateAll((frames) =>
          frames.map((frame) => getComputedStyle(frame).viewTransitionName).filter((name) => name !== 'none'),
        );
    const listed = await names(page);
    expect(new Set(listed).size, 'each drawing has its own name').toBe(listed.length);
    await page.getByRole('main').getByRole('link', { name: 'Bluedoor' }).click();
    await page.waitForURL(/\/bluedoor$/);
    const shown = () => page.evaluate(() => window.shown);
    await expect.poll(shown).toEqual([{ persisted: false, travels: true }]);
    expect(await names(page)).toEqual(['tenant-bluedoor']);
    expect(listed).toContain('tenant-bluedoor');
  });

  test('with reduced motion nothing moves', async ({ page }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await visit(page, '/projects');
    await page.getByRole('main').getByRole('link', { name: 'Bluedoor' }).click();
    await page.waitForURL(/\/bluedoor$/);
    // The event belongs to the first frame, which may come after the page's `load`.
    const shown = () => page.evaluate(() => window.shown);
    await expect.poll(shown).toEqual([{ persisted: false, travels: false }]);
  });
});
