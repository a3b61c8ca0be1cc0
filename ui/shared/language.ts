/**
 * How the page's language writes numbers, and which plural form a number takes.
 *
 * Only the browser knows: QuickJS has no `Intl`. So the server's render and the browser's first one use the plain
 * language; a word that is to be right in the server's markup, the theme fills in.
 */
import { useSyncExternalStore } from 'react';
import type { Category } from './schema.ts';

export interface Language {
  number: (value: number) => string;
  category: (count: number) => Category;
}

/** Numbers as they are, and one form for all of them. */
export const plain: Language = { number: String, category: () => 'other' };

/** The language of a BCP 47 tag; the plain one where the browser does not know it. */
export function languageOf(tag: string): Language {
  try {
    // A constructor would take the browser's own language in place of an unknown one.
    if (Intl.PluralRules.supportedLocalesOf(tag).length === 0) return plain;
    const numbers = new Intl.NumberFormat(tag);
    const plurals = new Intl.PluralRules(tag);
    return { number: (value) => numbers.format(value), category: (count) => plurals.select(count) };
  } catch {
    // No tag, or none that could be one.
    return plain;
  }
}

let known: Language | undefined;

/** The language of the page, which stays the same while it is open. */
function pageLanguage(): Language {
  known ??= languageOf(document.documentElement.lang);
  return known;
}

const never = () => () => {};

/** The language that an island writes in: the plain one until it is hydrated. */
export function useLanguage(): Language {
  return useSyncExternalStore(never, pageLanguage, () => plain);
}
