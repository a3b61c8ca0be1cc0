/** The build refuses a schema that says something in words that nobody understands. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkKeywords } from '../build/keywords.mjs';

test('a misspelt keyword is an error that says where', () => {
  const schema = { type: 'object', properties: { name: { type: 'string', minLenght: 1 } } };
  assert.throws(() => checkKeywords('Odd', schema), /islands\/Odd\/props.ts.*`schema.name`.*`minLenght`/);
});

test('names of properties and plain data are no keywords', () => {
  const schema = { properties: { minLenght: { enum: [{ anything: 1 }] } }, items: [{ const: { x: 1 } }] };
  checkKeywords('Odd', schema);
});
