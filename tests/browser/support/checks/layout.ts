/** Checks of the layout: shifts, sideways scrolling, invisible text. */
import type { Page } from '@playwright/test';

/** A movement that was not caused by an input of the visitor. */
export interface Shift {
  /** The share of the screen, as defined by the Layout Instability specification. */
  value: number;
  /** The elements that moved. */
  moved: string;
}

declare global {
  interface Window {
    layoutShifts: Shift[];
  }
}

/** Records layout shifts. Call before opening the page. */
export async function recordLayoutShifts(page: Page): Promise<void> {
  await page.addInitScript(() => {
    // Not declared in TypeScript's library yet.
    interface LayoutShift extends PerformanceEntry {
      value: number;
      hadRecentInput: boolean;
      sources: { node: Node | null }[];
    }
    const isShift = (entry: PerformanceEntry): entry is LayoutShift => entry.entryType === 'layout-shift';

    window.layoutShifts = [];
    const observer = new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries().filter(isShift)) {
        if (hadRecentInput) continue;
        const moved = sources.map(({ node }) => (node instanceof Element ? node : node?.parentElement));
        const names = moved.map((element) => `${element?.tagName.toLowerCase()}.${element?.className}`);
        window.layoutShifts.push({ value, moved: names.join(', ') });
      }
    });
    observer.observe({ type: 'layout-shift', buffered: true });
  });
}

/** Returns the shifts so far. */
export async function layoutShifts(page: Page): Promise<Shift[]> {
  return page.evaluate(() => window.layoutShifts);
}

/** Lays out the complete page, as if all of it were near the view. Otherwise `innerText`, for one, leaves out distant text. */
export async function layOutAll(page: Page): Promise<void> {
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('* { content-visibility: visible !important; }');
    document.adoptedStyleSheets = [sheet];
  });
}

/**
 * Returns elements that extend beyond the page sideways. A browser clips such elements far below the view, so this lays
 * out the complete page first.
 */
export async function sidewaysOverflow(page: Page): Promise<string[]> {
  await layOutAll(page);
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const scrolls = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
    if (scrolls <= width) return [];
    const wide = [...document.body.querySelectorAll('*')].filter(
      (element) => element.getBoundingClientRect().right > width + 1,
    );
    const names = wide.slice(0, 8).map((element) => `${element.tagName.toLowerCase()}.${element.className}`);
    return [`${scrolls} px in ${width} px`, ...names];
  });
}

/** Returns texts within `selector` that are invisible without being hidden on purpose. */
export async function unseenText(page: Page, selector: string): Promise<string[]> {
  return page.evaluate((selector) => {
    const aside =
      '[hidden], [aria-hidden="true"], details:not([open]), option, script, style, template, noscript, svg';
    const unseen: string[] = [];
    for (const root of document.querySelectorAll(selector)) {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const text = node.textContent?.trim();
        const parent = node.parentElement;
        if (!text || !parent || parent.closest(aside)) continue;
        if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
          unseen.push(text.slice(0, 60));
      }
    }
    return unseen;
  }, selector);
}

/** Returns links within `selector` that cannot be scrolled into view and clicked. */
export async function unreachableLinks(page: Page, selector: string): Promise<string[]> {
  return page.evaluate((selector) => {
    const reachable = (link: Element) => {
      link.scrollIntoView({ block: 'center', behavior: 'instant' });
      return [...link.getClientRects()].some(({ left, top, width, height }) => {
        const hit = document.elementFromPoint(left + width / 2, top + height / 2);
        return link.contains(hit);
      });
    };
    return [...document.querySelectorAll(`${selector} a[href]`)]
      .filter(
        (link) =>
          !link.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || !reachable(link),
      )
      .map((link) => link.textContent?.trim() ?? '');
  }, selector);
}
