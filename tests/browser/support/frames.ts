/** What the browser paints, frame by frame: for what must never be seen, not even for a moment. */
import type { Page } from '@playwright/test';

declare global {
  interface Window {
    opacities: number[];
  }
}

/** From now on keeps the opacity that an element has in each frame, in `window.opacities`. */
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

/** A few frames pass: enough for observers and styles to have followed. */
export async function settleFrames(page: Page): Promise<void> {
  await page.evaluate(async () => {
    for (let frame = 0; frame < 4; frame += 1) await new Promise((done) => requestAnimationFrame(done));
  });
}
