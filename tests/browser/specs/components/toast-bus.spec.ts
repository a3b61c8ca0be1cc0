/**
 * The bus of toasts with all its functions. The development build keeps the export names of its modules, so the test
 * can use the page's bus as an island does.
 */
import type { Page } from '@playwright/test';
import { developmentSite } from '../../support/environment.ts';
import { living } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

/** Milliseconds between a toast's dismissal and its removal from the list. */
const REMOVAL_DELAY = 1_000_000;
const NOON = Date.parse('2025-08-20T12:00:00Z');
const NO_ACTION = /^the action of toast `Saved` has an empty `(label|altText)`/;

/** The parts of `ui/shared/toast.ts` that the test uses. */
interface Bus {
  toast: (options: object) => { update: (options: object) => void; dismiss: () => void };
  current: () => { title: string; open: boolean }[];
}

declare global {
  interface Window {
    bus: Bus;
    handle: ReturnType<Bus['toast']>;
  }
}

test.use({ tolerated: /React DevTools|the action of toast/ });

/** Opens a page whose bus is `window.bus`, with a clock that only the test moves. */
async function withBus(page: Page) {
  const scripts: string[] = [];
  page.on('request', (request) => scripts.push(...(request.url().match(/.*\/chunk\.\w+\.js$/) ?? [])));
  await page.clock.install({ time: NOON });
  await page.goto(developmentSite.href);
  await page.getByLabel('First Name').focus();
  for (const name of ['Toaster', 'ContactForm']) await living(page, name);
  await page.clock.pauseAt(NOON + 3_600_000);
  await page.evaluate(async (scripts) => {
    for (const script of scripts) {
      const module: Partial<Bus> = await import(script);
      if (module.toast && module.current) window.bus = { toast: module.toast, current: module.current };
    }
  }, scripts);
  return page.getByRole('region', { name: 'F8' }).getByRole('listitem');
}

test('the newest toast replaces the one before', async ({ page }) => {
  const toast = await withBus(page);
  await page.evaluate(() => window.bus.toast({ title: 'First' }));
  await expect(toast).toContainText(['First']);
  await page.evaluate(() => {
    window.bus.toast({ title: 'Second' });
    window.bus.toast({ title: 'Third', description: 'with more to say' });
  });
  await expect(toast).toHaveCount(1);
  await expect(toast).toContainText('Third');
  await expect(toast).toContainText('with more to say');
  expect(await page.evaluate(() => window.bus.current().map(({ title }) => title))).toEqual(['Third']);
});

test('a toast is changed, dismissed, and removed 1,000,000 ms later', async ({ page }) => {
  const toast = await withBus(page);
  await page.evaluate(() => {
    window.handle = window.bus.toast({ title: 'Saving', duration: Number.POSITIVE_INFINITY });
  });
  await expect(toast).toContainText('Saving');
  await page.evaluate(() => window.handle.update({ title: 'Saved' }));
  await expect(toast).toContainText('Saved');
  await page.clock.runFor(60_000);
  await expect(toast).toBeVisible();

  await page.evaluate(() => window.handle.dismiss());
  await expect(toast).toHaveCount(0);
  const kept = () => page.evaluate(() => window.bus.current());
  expect(await kept()).toMatchObject([{ title: 'Saved', open: false }]);
  await page.clock.fastForward(REMOVAL_DELAY - 1);
  expect(await kept()).toHaveLength(1);
  await page.clock.fastForward(1);
  expect(await kept()).toEqual([]);
});

test('a destructive toast has its own look', async ({ page }) => {
  const toast = await withBus(page);
  const edges: string[] = [];
  for (const variant of ['default', 'destructive']) {
    await page.evaluate((variant) => window.bus.toast({ title: 'Saved', variant }), variant);
    await expect(toast).toHaveAttribute('data-variant', variant);
    edges.push(await toast.evaluate((element) => getComputedStyle(element).borderBlockStartColor));
  }
  expect(edges[0]).not.toBe(edges[1]);
});

for (const [name, action] of [
  ['label', { label: ' ', altText: 'Undo in the settings' }],
  ['alternative text', { label: 'Undo', altText: '' }],
] as const) {
  test(`an action with an empty ${name} is logged as an error and left out`, async ({ page }) => {
    const errors: string[] = [];
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    const toast = await withBus(page);
    await page.evaluate((action) => window.bus.toast({ title: 'Saved', action }), action);
    await expect(toast).toContainText('Saved');
    await expect(toast.getByRole('button')).toHaveText(['Dismiss']);
    expect(errors).toEqual([expect.stringMatching(NO_ACTION)]);
  });
}
