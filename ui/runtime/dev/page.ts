/** Reads the state of a page from its HTML, and swaps its style. Runs in the browser, with `--dev` only. */

/** The state of a page that is compared. */
export interface PageState {
  /** A digest of the page without its style, made by the engine. */
  page: string;
  style: string;
}

/**
 * Reads the state of a page. The engine writes these tags in a fixed form, and the policy forbids scripts to parse
 * HTML.
 */
export function factsOf(html: string): PageState | undefined {
  const page = /<script [^>]*\bdata-page="([^"]+)"/.exec(html)?.[1];
  if (!page) return undefined;
  return { page, style: /<style>(.*?)<\/style>/s.exec(html)?.[1] ?? '' };
}

/** The style that this script has inserted. The policy allows only the hash of the original style. */
const adopted = new CSSStyleSheet();

/** Replaces the page's style in one step, so that the page is never without styles. */
export function swapStyle({ style }: PageState): void {
  const first = document.querySelector('head > style');
  if (style === first?.textContent) return;
  adopted.replaceSync(style);
  if (!first) return;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, adopted];
  first.remove();
}
