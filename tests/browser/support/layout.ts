/** What a page's layout can get wrong by itself: shifting, sideways scrolling, text that nobody sees. */
import type { Page } from '@playwright/test';

/** A movement that no input of the visitor explains. */
export interface Shift {
  /** Share of the screen, as the Layout Instability specification reckons it. */
  value: number;
  /** The elements that moved. */
  moved: string;
}

declare global {
  interface Window {
    layoutShifts: Shift[];
  }
}

/** Call before the page is opened. */
export async function recordLayoutShifts(page: Page): Promise<void> {
  await page.addInitScript(() => {
    // What TypeScript's library does not declare yet.
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

/** The shifts so far. */
export async function layoutShifts(page: Page): Promise<Shift[]> {
  return page.evaluate(() => window.layoutShifts);
}

/** Has a page lay out all that it has, as if all of it were near what is shown. Else `innerText`, for one, leaves out what is far. */
export async function layOutAll(page: Page): Promise<void> {
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('* { content-visibility: visible !important; }');
    document.adoptedStyleSheets = [sheet];
  });
}

/**
 * Elements that stick out of the page sideways; empty where nothing scrolls. Of what is laid out only near the view a
 * browser cuts off what sticks out, so everything is laid out from here on.
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

/** Pieces of text within `selector` that are there and cannot be seen, though nothing says that they are hidden. */
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

/** Links within `selector` that cannot be brought to the screen and hit with a pointer there. */
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
