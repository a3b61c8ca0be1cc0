/** What a page's HTML says of itself, and how its style is swapped. Runs in the browser, with `--dev` only. */

/** What is compared of a page. */
export interface Facts {
  /** A digest of the page without its style, made by the engine. */
  page: string;
  style: string;
}

/** Reads a page. The engine writes these tags, in one form; the policy lets no script parse HTML. */
export function factsOf(html: string): Facts | undefined {
  const page = /<script [^>]*\bdata-page="([^"]+)"/.exec(html)?.[1];
  if (!page) return undefined;
  return { page, style: /<style>(.*?)<\/style>/s.exec(html)?.[1] ?? '' };
}

/** The style that this script put in: the policy knows the hash of the first one only. */
const adopted = new CSSStyleSheet();

/** Puts a page's style in the place of the one that is there, in one step: no moment without styles. */
export function swapStyle({ style }: Facts): void {
  const first = document.querySelector('head > style');
  if (style === first?.textContent) return;
  adopted.replaceSync(style);
  if (!first) return;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, adopted];
  first.remove();
}
