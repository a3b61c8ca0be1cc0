/** What a page's HTML says of itself, and how its styles are swapped. Runs in the browser, with `--dev` only. */

/** What is compared of a page. */
export interface Facts {
  /** A digest of the page without its styles, made by the engine. */
  page: string;
  /** The address and integrity of the stylesheet. */
  sheet: { href: string; integrity: string } | undefined;
  /** The tenant's own colours. */
  ownStyle: string | undefined;
}

/** Reads a page. The engine writes these tags, in one form; the policy lets no script parse HTML. */
export function factsOf(html: string): Facts | undefined {
  const page = /<script [^>]*\bdata-page="([^"]+)"/.exec(html)?.[1];
  if (!page) return undefined;
  const [, href, integrity] = /<link rel="stylesheet" href="([^"]+)" integrity="([^"]+)">/.exec(html) ?? [];
  return {
    page,
    sheet: href && integrity ? { href, integrity } : undefined,
    ownStyle: /<style>([^<]*)<\/style>/.exec(html)?.[1],
  };
}

/** Colours that this script put in; the policy knows the hash of the first ones only. */
let adopted: CSSStyleSheet | undefined;
let ownStyle = document.querySelector('head > style')?.textContent ?? undefined;

/** Puts a page's styles in the place of those that are there. False when they cannot be had. */
export async function swapStyles(facts: Facts): Promise<boolean> {
  if (facts.ownStyle !== ownStyle) {
    ownStyle = facts.ownStyle;
    document.querySelector('head > style')?.remove();
    const others = document.adoptedStyleSheets.filter((sheet) => sheet !== adopted);
    adopted = new CSSStyleSheet();
    adopted.replaceSync(ownStyle ?? '');
    document.adoptedStyleSheets = [...others, adopted];
  }
  const old = document.querySelector<HTMLLinkElement>('link[rel="stylesheet"]');
  if (old?.getAttribute('href') === facts.sheet?.href) return true;
  if (!old || !facts.sheet) return false;
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.integrity = facts.sheet.integrity;
  link.href = facts.sheet.href;
  const loaded = new Promise<boolean>((resolve) => {
    link.onload = () => resolve(true);
    link.onerror = () => resolve(false);
  });
  old.after(link);
  // The old sheet stays until the new one is there: no moment without styles.
  const there = await loaded;
  if (there) old.remove();
  return there;
}
