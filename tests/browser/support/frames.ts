/** Records painted frames, for content that must never be visible, not even in one frame. */
import type { Page } from '@playwright/test';

declare global {
  interface Window {
    opacities: number[];
  }
}

/** Records the opacity of an element in each frame, in `window.opacities`. */
export async function catchFrames(page: Page, selector: string): Promise<void> {
  await page.evaluate((selector) => {
    const element = document.querySelector(selector);
    if (!element) throw new Error(`there is no \`${selector}\``);
    window.opacities = [];
    const look = () => {
      window.opacities.push(Number(getComputedStyle(element).opacity));
      requestAnimationFrame(look);
    };
    look();
  }, selector);
}

/** Waits for a few frames, so that observers and styles are up to date. */
export async function settleFrames(page: Page): Promise<void> {
  await page.evaluate(async () => {
    for (let frame = 0; frame < 4; frame += 1) await new Promise((done) => requestAnimationFrame(done));
  });
}
