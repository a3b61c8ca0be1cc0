/** The texts of markup that a visitor reads or hears. */

/** Returns the texts and the attributes that are read out, in order. */
export function wordsOf(html: string): string[] {
  const found = html.matchAll(/\s(?:aria-label|alt|placeholder|title)="([^"]*)"|>([^<]+)/g);
  return [...found]
    .map(([, attribute, text]) => unescaped(attribute ?? text ?? '').trim())
    .filter((word) => word !== '');
}

/** Decodes text that React has escaped. */
function unescaped(html: string): string {
  return html
    .replace(/&(lt|gt|quot|#x27);/g, (_, name: string) => ({ lt: '<', gt: '>', quot: '"' })[name] ?? "'")
    .replaceAll('&amp;', '&');
}

/** Returns all texts in the props. */
export function textsOf(props: unknown): string[] {
  if (typeof props === 'string') return [props];
  return typeof props === 'object' && props !== null ? Object.values(props).flatMap(textsOf) : [];
}
