/** What the script of `serve --dev` decides: see runtime/dev. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { marked, errorsFor, placeOf } from '../runtime/dev/state.ts';
import { bundle } from './bundle.ts';

const error = {
  file: 'tenants/a/tenant.yaml',
  line: 2,
  column: 3,
  length: 4,
  message: 'm',
  text: '  nmae: 🙂 x',
};

test('a page hears of its own tenant and of what concerns everybody', () => {
  const other = { file: 'tenants', message: 'away' };
  const state = { everyone: [other], tenants: { a: [error], b: [] } };
  assert.deepEqual(errorsFor('a', state), [other, error]);
  assert.deepEqual(errorsFor('c', state), [other]);
});

test('a place is written as editors open it', () => {
  assert.equal(placeOf(error), 'tenants/a/tenant.yaml:2:3');
  assert.equal(placeOf({ file: 'tenants/a', message: 'm' }), 'tenants/a');
});

test('what is meant in a line is found by characters', () => {
  assert.deepEqual(marked(error), ['  ', 'nmae', ': 🙂 x']);
  assert.deepEqual(marked({ ...error, column: 9, length: 1 }), ['  nmae: ', '🙂', ' x']);
  assert.deepEqual(marked({ ...error, column: 99 }), ['  nmae: 🙂 x', ' ', '']);
  assert.equal(marked({ file: 'f', message: 'm', text: 'a stack' }), undefined);
});

test('the script is no file for visitors', () => {
  const { client } = bundle();
  for (const [name, bytes] of client) assert.doesNotMatch(String(bytes), /\.rowhouse\/events/, name);
});
