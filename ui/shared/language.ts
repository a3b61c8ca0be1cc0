/**
 * Number formats and plural forms of the page's language.
 *
 * Only the browser knows them: QuickJS has no `Intl`. The server's render and the browser's first render therefore
 * use the plain language. The theme fills in a word that must be right in the server's markup.
 */
import { useSyncExternalStore } from 'react';
import type { Category } from './schema.ts';

export interface Language {
  number: (value: number) => string;
  category: (count: number) => Category;
}

/** The plain language: numbers as they are, and one form for all of them. */
export const plain: Language = { number: String, category: () => 'other' };

/** Returns the language of a BCP 47 tag, or the plain language if the browser does not know it. */
export function languageOf(tag: string): Language {
  try {
    // A constructor would use the browser's own language in place of an unknown one.
    if (Intl.PluralRules.supportedLocalesOf(tag).length === 0) return plain;
    const numbers = new Intl.NumberFormat(tag);
    const plurals = new Intl.PluralRules(tag);
    return { number: (value) => numbers.format(value), category: (count) => plurals.select(count) };
  } catch {
    // The tag is missing or invalid.
    return plain;
  }
}

let known: Language | undefined;

/** Returns the language of the page, which stays the same while the page is open. */
function pageLanguage(): Language {
  known ??= languageOf(document.documentElement.lang);
  return known;
}

const never = () => () => {};

/** Returns the language that an island uses: the plain language until the island is hydrated. */
export function useLanguage(): Language {
  return useSyncExternalStore(never, pageLanguage, () => plain);
}
