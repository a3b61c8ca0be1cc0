/** Waiting until a page is what a visitor gets: no fixed pauses, only conditions. */
import { expect, type Page } from '@playwright/test';

/** Islands that are due: one with `client="media"` waits for its query, and rightly so. */
export const DUE = 'row-island[client]:not([client="media"], [client="none"])';

/** Opens a page and waits until it is complete. */
export async function visit(page: Page, url: string): Promise<void> {
  await arrive(page, url);
  await stillness(page);
}

/**
 * Opens a page and walks through it once, so that all that waits to be seen has been seen; ends at the top. Does not
 * wait for fonts, nor for what moves.
 */
export async function arrive(page: Page, url: string): Promise<void> {
  await page.goto(url, { waitUntil: 'domcontentloaded' });
  await walkThrough(page);
  await islandsReady(page);
}

/** Every island that is due has come to life. */
export async function islandsReady(page: Page): Promise<void> {
  const waiting = page.locator(`${DUE}:not([data-state="ready"])`);
  await expect(waiting, 'islands that have not come to life').toHaveCount(0);
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
