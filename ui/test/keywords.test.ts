/** The build's check of schema keywords. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkKeywords } from '../build/keywords.mjs';

test('a misspelt keyword is an error with its place', () => {
  const schema = { type: 'object', properties: { name: { type: 'string', minLenght: 1 } } };
  assert.throws(() => checkKeywords('Odd', schema), /islands\/Odd\/props.ts.*`schema.name`.*`minLenght`/);
});

test('names of properties and plain data are not checked as keywords', () => {
  const schema = { properties: { minLenght: { enum: [{ anything: 1 }] } }, items: [{ const: { x: 1 } }] };
  checkKeywords('Odd', schema);
});
