/** What fills in the placeholders of words. Pure. */
import type { Language } from './language.ts';
import type { Counted } from './schema.ts';

/**
 * A word with its placeholders, `{name}` or `{name, type}`, filled in; what is a number is written as the language writes
 * numbers. Of a plural it takes the form for the value of `count`.
 */
export function fill(
  word: Counted,
  values: Readonly<Record<string, string | number>>,
  language: Language,
): string {
  const text =
    typeof word === 'string' ? word : (word[language.category(Number(values.count))] ?? word.other);
  return text.replace(/\{(\w+)(?:\s*,\s*\w+)?\}/g, (whole, name: string) => {
    const value = values[name] ?? whole;
    return typeof value === 'number' ? language.number(value) : value;
  });
}
