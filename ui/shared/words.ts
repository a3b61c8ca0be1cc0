/** Fills in the placeholders of UI strings. Pure. */
import type { Language } from './language.ts';
import type { Counted } from './schema.ts';

/**
 * Fills in the placeholders of a text, `{name}` or `{name, type}`. Numbers are written in the format of the
 * language. A plural takes the form for the value of `count`.
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
