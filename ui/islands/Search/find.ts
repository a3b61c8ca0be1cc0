/** Finds places in the index that the engine makes of a tenant's pages (`/search.json`). Pure. */

/** The index: pages with their address and title; parts with their page's number, fragment, heading and words. */
export interface Index {
  pages: [href: string, title: string][];
  parts: [page: number, fragment: string, heading: string, words: string][];
}

/** A place to go to. */
export interface Place {
  href: string;
  title: string;
  /** Empty for the page itself. */
  heading: string;
}

/** So many places are shown: who needs more says more. */
const MOST = 8;

/** The best places for what was typed. Every word of it has to be there, or to begin a word that is. */
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
  // Sorting is stable: of two that are worth the same, the first in the order of the pages comes first.
  rated.sort((one, other) => other.worth - one.worth);
  return rated.slice(0, MOST).map(({ place }) => place);
}

/** What a word is worth in a part: most in its heading, then in the page's title where the page begins, then below. */
function worth(word: string, title: string, heading: string, words: string): number {
  if (heading && begins(heading.toLowerCase(), word)) return heading.length === word.length ? 12 : 9;
  if (begins(title.toLowerCase(), word)) return heading ? 1 : 10;
  if (begins(words, word)) return 4;
  return `${heading} ${words}`.toLowerCase().includes(word) ? 2 : 0;
}

/** Whether one of the words of a text begins with these letters. */
function begins(text: string, letters: string): boolean {
  return text.startsWith(letters) || text.includes(` ${letters}`);
}
