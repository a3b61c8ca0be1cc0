/** What a visitor reads or hears of markup. */

/** Its texts and the attributes that are read out, in order. */
export function wordsOf(html: string): string[] {
  const found = html.matchAll(/\s(?:aria-label|alt|placeholder|title)="([^"]*)"|>([^<]+)/g);
  return [...found]
    .map(([, attribute, text]) => unescaped(attribute ?? text ?? '').trim())
    .filter((word) => word !== '');
}

/** The text that React has escaped. */
function unescaped(html: string): string {
  return html
    .replace(/&(lt|gt|quot|#x27);/g, (_, name: string) => ({ lt: '<', gt: '>', quot: '"' })[name] ?? "'")
    .replaceAll('&amp;', '&');
}

/** All texts that props hold. */
export function textsOf(props: unknown): string[] {
  if (typeof props === 'string') return [props];
  return typeof props === 'object' && props !== null ? Object.values(props).flatMap(textsOf) : [];
}
