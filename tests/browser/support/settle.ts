/** Waiting until a page is what a visitor gets: no fixed pauses, only conditions. */
import { expect, type Locator, type Page } from '@playwright/test';

/** All islands of a page. */
export const ISLANDS = 'row-island';

/** Opens a page and waits until it is complete. Its islands wait for a visitor who turns to them. */
export async function visit(page: Page, url: string): Promise<void> {
  await arrive(page, url);
  await loaded(page);
  await stillness(page);
}

/**
 * Opens a page and walks through it once, so that all that waits to be seen has been seen; ends at the top. Does not
 * wait for fonts, which the load event waits for, nor for what moves.
 */
export async function arrive(page: Page, url: string): Promise<void> {
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  await walkThrough(page);
}

/** The load event was, and the loader has done what it does then. */
export async function loaded(page: Page): Promise<void> {
  await expect(page.locator('html[data-loaded]')).toHaveCount(1);
}

/** Turns to every island, as a pointer would that goes over all of the page. */
export async function turnToIslands(page: Page): Promise<void> {
  await page.locator(ISLANDS).evaluateAll((islands) => {
    for (const island of islands) island.dispatchEvent(new PointerEvent('pointermove', { movementX: 1 }));
  });
}

/**
 * Moves the pointer onto an element and a little further, as a hand does. Of the first move alone a browser does not
 * say how far it went, so that it looks like a page that was shown under a resting pointer.
 */
export async function pointAt(element: Locator): Promise<void> {
  await element.hover();
  await element.hover({ position: { x: 2, y: 2 } });
}

/** Every island lives. */
export async function allLiving(page: Page): Promise<void> {
  await expect(page.locator(`${ISLANDS}:not([data-state="ready"])`), 'islands without life').toHaveCount(0);
}

/** The island of that name lives. */
export async function living(page: Page, name: string): Promise<void> {
  await expect(page.locator(`row-island[name="${name}"]`)).toHaveAttribute('data-state', 'ready');
}

/** Fonts are in, and nothing moves but what the visitor scrolls. */
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
  // What moves ends in a third of a second of drawn frames, which a busy machine may take long to draw.
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
