/** Placeholders, plural forms and number formats. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { languageOf, plain } from '../shared/language.ts';
import { fill } from '../shared/words.ts';

const entries = {
  one: '{count, number} wpis',
  few: '{count, number} wpisy',
  other: '{count, number} wpisów',
};

test('placeholders are filled in with or without a type, and unknown ones stay', () => {
  assert.equal(fill('{name}, {name, text} and {other}', { name: 'A' }, plain), 'A, A and {other}');
  assert.equal(fill('{a}', { a: '{b}', b: 'x' }, plain), '{b}', 'a value holds no placeholders');
  assert.equal(fill('{price}', { price: '$& $1' }, plain), '$& $1');
});

test('a plural form is chosen by the count, in the language of the page', () => {
  const say = (language: string, count: number) => fill(entries, { count }, languageOf(language));
  assert.deepEqual(
    [1, 3, 5].map((count) => say('pl', count)),
    ['1 wpis', '3 wpisy', '5 wpisów'],
  );
  assert.equal(say('de', 3), '3 wpisów', 'a form that the word lacks is `other`');
});

test('numbers are written in the format of the language', () => {
  const say = (language: string) => fill('{total, number}', { total: 12345 }, languageOf(language));
  assert.equal(say('en'), '12,345');
  assert.equal(say('de-DE'), '12.345');
});

test('an unknown language has plain numbers and one form', () => {
  for (const language of ['', 'tlh', 'not a language']) {
    assert.equal(fill('{total}', { total: 12345 }, languageOf(language)), '12345', language);
    assert.equal(fill(entries, { count: 1 }, languageOf(language)), '1 wpisów', language);
  }
});
