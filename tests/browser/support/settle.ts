/** Waits until a page is complete: no fixed pauses, only conditions. */
import { expect, type Locator, type Page } from '@playwright/test';

/** All islands of a page. */
export const ISLANDS = 'row-island';

/** Opens a page and waits until it is complete. Its islands wait for an interaction. */
export async function visit(page: Page, url: string): Promise<void> {
  await arrive(page, url);
  await loaded(page);
  await stillness(page);
}

/**
 * Opens a page and scrolls through it once, so that all fade-ins have begun, and back to the top. Does not wait for
 * fonts or animations.
 */
export async function arrive(page: Page, url: string): Promise<void> {
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  await walkThrough(page);
}

/** Waits until the load event has fired, and the loader has handled it. */
export async function loaded(page: Page): Promise<void> {
  await expect(page.locator('html[data-loaded]')).toHaveCount(1);
}

/** Moves the pointer over every island. */
export async function turnToIslands(page: Page): Promise<void> {
  await page.locator(ISLANDS).evaluateAll((islands) => {
    for (const island of islands) island.dispatchEvent(new PointerEvent('pointermove', { movementX: 1 }));
  });
}

/**
 * Moves the pointer onto an element and slightly further, as a hand does. For a single move, a browser reports no
 * distance, so it looks like a page that was shown under a resting pointer.
 */
export async function pointAt(element: Locator): Promise<void> {
  await element.hover();
  await element.hover({ position: { x: 2, y: 2 } });
}

/** Waits until every island is hydrated. */
export async function allLiving(page: Page): Promise<void> {
  await expect(page.locator(`${ISLANDS}:not([data-state="ready"])`), 'islands without life').toHaveCount(0);
}

/** Waits until the island of that name is hydrated. */
export async function living(page: Page, name: string): Promise<void> {
  await expect(page.locator(`row-island[name="${name}"]`)).toHaveAttribute('data-state', 'ready');
}

/** Waits until fonts are loaded and animations have ended, except those bound to scrolling. */
export async function stillness(page: Page): Promise<void> {
  await page.evaluate(() => document.fonts.ready.then(() => undefined));
  const moving = () =>
    page.evaluate(() =>
      document
        .getAnimations()
        .filter(({ playState, timeline }) => playState === 'running' && timeline instanceof DocumentTimeline)
        .map((animation) => {
          const element = animation.effect instanceof KeyframeEffect ? animation.effect.target : null;
          return `${element?.tagName.toLowerCase()}.${element?.className}`;
        }),
    );
  // Animations end within a third of a second of drawn frames, which may take long on a busy machine.
  await expect.poll(moving, { message: 'elements that keep moving', timeout: 45_000 }).toEqual([]);
}

async function walkThrough(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const frame = () =>
      new Promise<void>((done, fail) => {
        setTimeout(fail, 30_000, new Error('the browser has stopped drawing'));
        requestAnimationFrame(() => requestAnimationFrame(() => done()));
      });
    for (let top = 0; top < document.documentElement.scrollHeight; top += innerHeight) {
      scrollTo({ top, behavior: 'instant' });
      await frame();
    }
    scrollTo({ top: 0, behavior: 'instant' });
    await frame();
  });
}
