/** Finds places in the index that the engine makes of a tenant's pages (`/search.json`). Pure. */

/** The index: pages with address and title; parts with the number of their page, fragment, heading and words. */
export interface Index {
  pages: [href: string, title: string][];
  parts: [page: number, fragment: string, heading: string, words: string][];
}

/** A search result. */
export interface Place {
  href: string;
  title: string;
  /** Empty for the page itself. */
  heading: string;
}

/** Maximum number of results. */
const MAX_PLACES = 8;

/** Returns the best results for what was typed. Every word must occur in a part, or begin a word in it. */
export function find(index: Index, typed: string): Place[] {
  const wanted = typed
    .normalize('NFC')
    .toLowerCase()
    .split(/[\s,;:!?、。，！？]+/)
    .filter(Boolean);
  if (wanted.length === 0) return [];
  const rated: { place: Place; worth: number }[] = [];
  for (const [page, fragment, heading, words] of index.parts) {
    const [href, title] = index.pages[page] ?? ['', ''];
    const worths = wanted.map((word) => worth(word, title, heading, words));
    if (worths.includes(0)) continue;
    const place = { href: fragment ? `${href}#${fragment}` : href, title, heading };
    rated.push({ place, worth: worths.reduce((sum, each) => sum + each) });
  }
  // Sorting is stable: results of equal weight stay in the order of the pages.
  rated.sort((one, other) => other.worth - one.worth);
  return rated.slice(0, MAX_PLACES).map(({ place }) => place);
}

/**
 * Returns the weight of a word in a part: highest in the heading, then in the page's title if the page begins
 * there, then in the text. 0 if the word does not occur.
 */
function worth(word: string, title: string, heading: string, words: string): number {
  if (heading && begins(heading.toLowerCase(), word)) return heading.length === word.length ? 12 : 9;
  if (begins(title.toLowerCase(), word)) return heading ? 1 : 10;
  if (begins(words, word)) return 4;
  return `${heading} ${words}`.toLowerCase().includes(word) ? 2 : 0;
}

/** Returns whether a word of the text begins with these letters. */
function begins(text: string, letters: string): boolean {
  return text.startsWith(letters) || text.includes(` ${letters}`);
}
