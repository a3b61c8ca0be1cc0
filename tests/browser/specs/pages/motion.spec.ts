/** Automatic motion: the home page's opening, and parts that fade in during scrolling. */
import type { Page } from '@playwright/test';
import { catchFrames, settleFrames } from '../../support/frames.ts';
import { holdBack, holdLoader } from '../../support/hold.ts';
import { loaded as pageLoaded } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

const HERO = '.hero-words';
/** Milliseconds between the load event and the opening. */
const DELAY = 100;
/** The part of an element that must be in view. */
const THRESHOLD = 0.1;
/** Conditions under which nothing may be hidden for motion. */
const STILL = [
  ['with motion reduced', { reducedMotion: 'reduce' }],
  ['on paper', { media: 'print' }],
] as const;

test.describe('the opening', () => {
  test('begins 100 ms after the load event, and not before', async ({ page }) => {
    await catchOpening(page);
    await page.goto('/');
    const { loaded, frames, delay, begins } = await opening(page);
    expect(delay).toBe(DELAY);
    expect(begins - loaded).toBeGreaterThanOrEqual(DELAY);
    // The loader waits for the third frame (ui/runtime/loaded.ts), in which this test has looked already. Frames are
    // counted, since a busy machine may take long for each.
    expect(frames).toBeLessThanOrEqual(4);

    const { before, at, end } = await page.evaluate((selector) => {
      const hero = document.querySelector(selector);
      const [fade] = window.opening;
      if (!hero || !fade) throw new Error('nothing opens');
      const opacity = (time: number) => {
        fade.currentTime = time;
        return Number(getComputedStyle(hero).opacity);
      };
      fade.pause();
      // On a busy machine the opening for slow pages may have begun by now.
      for (const other of hero.getAnimations()) if (other !== fade) other.cancel();
      return { before: opacity(99), at: opacity(130), end: opacity(100 + 299.9) };
    }, HERO);
    // An opacity of 0.01 is invisible. An opacity of 0 would delay the largest contentful paint.
    expect(before).toBeLessThanOrEqual(0.011);
    expect(at).toBeGreaterThan(0.05);
    expect(end).toBeGreaterThan(0.99);
  });

  test('does not wait for slow files', async ({ page }) => {
    // The load event waits for the fonts.
    const release = await holdBack(page, /\.woff2$/);
    await page.goto('/', { waitUntil: 'commit' });
    await openedLate(page);
    await expect(page.locator('html[data-loaded]')).toHaveCount(0);

    // The load event fires late: visible elements stay visible.
    await catchFrames(page, HERO);
    release();
    await expect(page.locator('html[data-loaded]')).toHaveCount(1);
    await settleFrames(page);
    expect(await page.evaluate(() => Math.min(...window.opacities))).toBe(1);
  });

  test.describe('without its script', () => {
    test.use({ tolerated: /net::ERR_FAILED/ });

    test('still happens', async ({ page }) => {
      const release = await holdLoader(page);
      release(false);
      await page.goto('/', { waitUntil: 'commit' });
      await openedLate(page);
    });
  });

  for (const [name, media] of STILL) {
    test(`is complete from the start ${name}`, async ({ page }) => {
      await page.emulateMedia(media);
      const release = await holdLoader(page);
      await page.goto('/', { waitUntil: 'commit' });
      await expect(page.locator(HERO)).toBeVisible();
      expect(await page.locator(HERO).evaluate((hero) => getComputedStyle(hero).opacity)).toBe('1');
      expect(await page.locator(HERO).evaluate((hero) => hero.getAnimations().length)).toBe(0);
      release();
    });
  }
});

test.describe('fade-in on scroll', () => {
  test('stays hidden at 9% and shows at 10%, once', async ({ page }) => {
    await page.goto('/');
    const target = page.locator('.statement-words[data-reveal]');
    await expect(target).toHaveAttribute('data-seen', 'false');
    await expect(target).toHaveCSS('opacity', '0');
    await page.evaluate(() => document.fonts.ready.then(() => undefined));

    // A hidden element is slightly lower, and the browser measures that position.
    const { top, height } = await target.evaluate((element) => {
      const box = element.getBoundingClientRect();
      return { top: box.top + scrollY, height: box.height };
    });
    const viewport = page.viewportSize()?.height ?? 0;
    const scrollTo = async (part: number) => {
      await page.evaluate((y) => window.scrollTo({ top: y, behavior: 'instant' }), top + part - viewport);
      await settleFrames(page);
    };
    const enough = Math.ceil(height * THRESHOLD);
    expect((enough - 1.5) / height).toBeGreaterThan(0.085);

    await scrollTo(enough - 1.5);
    await expect(target).toHaveAttribute('data-seen', 'false');
    await scrollTo(enough + 0.5);
    await expect(target).toHaveAttribute('data-seen', 'true');
    await expect(target).toHaveCSS('opacity', '1');

    // It does not fade in again.
    await catchFrames(page, '.statement-words');
    await scrollTo(-500);
    await scrollTo(height + 50);
    await expect(target).toHaveAttribute('data-seen', 'true');
    expect(await page.evaluate(() => Math.min(...window.opacities))).toBe(1);
  });

  for (const [name, media] of STILL) {
    test(`is visible from the start ${name}`, async ({ page }) => {
      await page.emulateMedia(media);
      await page.goto('/');
      const waiting = page.locator('[data-reveal][data-seen="false"]');
      await expect(waiting).not.toHaveCount(0);
      expect(await waiting.evaluateAll((all) => all.map((one) => getComputedStyle(one).opacity))).toEqual(
        Array(await waiting.count()).fill('1'),
      );
    });
  }

  test('shows elements that the keyboard reaches', async ({ page }) => {
    await page.goto('/');
    await pageLoaded(page);
    const words = page.locator('.statement-words[data-seen="false"]');
    await expect(words).toHaveCSS('opacity', '0');
    await words.evaluate((element) => {
      const link = document.createElement('a');
      link.href = '#about';
      element.append(link);
      link.focus({ preventScroll: true });
    });
    await expect(words).toHaveCSS('opacity', '1');
  });

  test('is visible from the start on pages without `reveal`', async ({ page }) => {
    for (const path of ['/about', '/services/web-apps', '/bluedoor', '/givefive']) {
      await page.goto(path);
      await pageLoaded(page);
      await expect(page.locator('[data-seen]'), path).toHaveCount(0);
    }
  });
});

declare global {
  interface Window {
    opening: CSSAnimation[];
    /** The number of frames between the load event and the opening. */
    framesLoaded: number;
  }
}

/** Records the animations of the opening. Call before opening the page. */
async function catchOpening(page: Page): Promise<void> {
  await page.addInitScript((selector) => {
    window.opening = [];
    window.framesLoaded = 0;
    let isLoaded = false;
    addEventListener('load', () => {
      isLoaded = true;
    });
    const look = () => {
      if (isLoaded) window.framesLoaded += 1;
      const hero = document.querySelector(selector);
      for (const animation of hero?.getAnimations() ?? [])
        if (animation instanceof CSSAnimation && animation.animationName === 'opening')
          window.opening = [animation];
      if (!window.opening.length) requestAnimationFrame(look);
    };
    look();
  }, HERO);
}

/** Waits until the page has opened without a load event. */
async function openedLate(page: Page): Promise<void> {
  await page.waitForFunction(
    (selector) =>
      document
        .querySelector(selector)
        ?.getAnimations()
        .some(
          (animation) =>
            animation instanceof CSSAnimation &&
            animation.animationName === 'opening-late' &&
            animation.playState === 'finished',
        ),
    HERO,
  );
  await expect(page.locator(HERO)).toHaveCSS('opacity', '1');
}

/** Returns the time of the load event, the frames until the opening, its delay and its start, in milliseconds of the page's clock. */
async function opening(page: Page): Promise<Record<'loaded' | 'frames' | 'delay' | 'begins', number>> {
  await page.waitForFunction(() => typeof window.opening[0]?.startTime === 'number');
  return page.evaluate(() => {
    const [fade] = window.opening;
    const [entry] = performance.getEntriesByType('navigation');
    const loaded = entry instanceof PerformanceNavigationTiming ? entry.loadEventStart : Number.NaN;
    const delay = Number(fade?.effect?.getTiming().delay);
    return { loaded, frames: window.framesLoaded, delay, begins: Number(fade?.startTime) + delay };
  });
}
