/** Going from page to page: at once, and nothing loaded before it is needed. */
import type { Page } from '@playwright/test';
import { holdLoader } from '../support/hold.ts';
import { layOutAll } from '../support/layout.ts';
import { allLiving, loaded, turnToIslands, visit } from '../support/settle.ts';
import { expect, test } from '../support/test.ts';

declare global {
  interface Window {
    /** What this document was told when it was shown. */
    shown: { persisted: boolean; travels: boolean }[];
  }
}

/** A script that the page asked for. */
interface Script {
  name: string;
  /** When, in milliseconds since the page was asked for. */
  start: number;
  /** Bytes that came over the network. */
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

/** For how many elements the browser worked out styles, each time that it did, as it tells in a trace. */
function styledAnew(trace: Buffer): number[] {
  const { traceEvents } = JSON.parse(trace.toString()) as {
    traceEvents: { name: string; args: { elementCount?: number } }[];
  };
  return traceEvents
    .filter(({ name }) => name === 'UpdateLayoutTree')
    .map(({ args }) => args.elementCount ?? 0);
}

/** Whether all of the page is there but its scripts. */
const isComplete = () => document.readyState !== 'loading';

/** When something of the page was first painted, in milliseconds since it was asked for; 0 before that. */
const firstPaint = (page: Page) =>
  page.evaluate(() => performance.getEntriesByName('first-paint')[0]?.startTime ?? 0);

/** A page of every kind. */
const KINDS = ['/', '/blog', '/contact', '/privacy', '/services/web-apps', '/bluedoor', '/bluedoor/support'];

test.describe('loading', () => {
  test('until a page has loaded it fetches no script', async ({ page }) => {
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
    test(`what the loader adds to ${path} leaves the styles of the rest alone`, async ({ page, browser }) => {
      const release = await holdLoader(page);
      await page.goto(path, { waitUntil: 'commit' });
      await expect.poll(() => page.evaluate(isComplete)).toBe(true);
      // What is laid out only near the view would have its first styles with the first frame, which waits for the loader.
      await layOutAll(page);
      // The fonts are asked for by the first layout, and all is styled again once they are there, or once the tenth of a
      // second is over that optional ones have to come (CSS Fonts Level 4, `font-display`).
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
      // Even where the houses light up.
      const elements = await page.locator('*').count();
      expect(Math.max(...styled)).toBeLessThan(elements / 2);
    });
  }

  test('nothing is painted before the loader has marked the page', async ({ page }) => {
    const release = await holdLoader(page);
    await page.goto('/privacy', { waitUntil: 'commit' });
    await expect.poll(() => page.evaluate(isComplete)).toBe(true);
    // It could have been painted many times over.
    const held = await page.evaluate(
      () => new Promise<number>((tell) => setTimeout(() => tell(performance.now()), 500)),
    );
    release();
    await expect.poll(() => firstPaint(page)).toBeGreaterThan(held);
    await expect(page.locator('.consent')).toBeVisible();
  });

  test('who only reads has no island alive and nothing compiled', async ({ page }) => {
    for (const path of KINDS) {
      await visit(page, path);
      await expect(page.locator('head link[rel="prefetch"][href*="/runtime."]'), path).toHaveCount(1);
      await expect(page.locator('head link[rel="modulepreload"]'), path).toHaveCount(0);
      await expect(page.locator('row-island[data-state]'), path).toHaveCount(0);
    }
  });

  for (const path of ['/contact', '/privacy-policy']) {
    test(`what the islands of ${path} need is fetched ahead, once, and nothing else`, async ({ page }) => {
      await visit(page, path);
      const ahead = await page
        .locator('head link[media="not all"]')
        .evaluateAll((links) => links.map((link) => link.getAttribute('href')?.replace(/.*\//, '') ?? ''));
      const transferred = async () =>
        (await scripts(page)).filter((script) => script.transferred > 0).map(({ name }) => name);
      await expect.poll(async () => (await transferred()).sort()).toEqual(ahead.sort());
      await turnToIslands(page);
      await allLiving(page);

      // What draws toasts is not among them: the toaster fetches it.
      expect((await transferred()).filter((name) => ahead.includes(name)).sort()).toEqual(ahead);
      const standing = await page
        .locator('row-island')
        .evaluateAll((islands) => islands.map((island) => `${island.getAttribute('name')}`));
      expect(ahead.flatMap((name) => name.match(/^[A-Z]\w+/) ?? []).sort()).toEqual(standing.sort());
    });
  }

  test('the first paint waits for nothing but the page itself', async ({ page }) => {
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
    expect(await names(page)).toEqual(['tenant-bluedoor']);
    expect(street).toContain('tenant-bluedoor');
  });

  test('with motion reduced nothing travels', async ({ page }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await visit(page, '/projects');
    await page.getByRole('main').getByRole('link', { name: 'Bluedoor' }).click();
    await page.waitForURL(/\/bluedoor$/);
    // The event belongs to the first frame, which may come after the page's `load`.
    const shown = () => page.evaluate(() => window.shown);
    await expect.poll(shown).toEqual([{ persisted: false, travels: false }]);
  });
});
