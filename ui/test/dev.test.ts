/** The pure functions of the script of `serve --dev`: see runtime/dev. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { marked, errorsFor, hiddenReason, placeOf } from '../runtime/dev/state.ts';
import { bundle } from './bundle.ts';

const error = {
  file: 'tenants/a/tenant.yaml',
  line: 2,
  column: 3,
  length: 4,
  message: 'm',
  text: '  nmae: 🙂 x',
};

test('a page gets errors of its own tenant and those that concern all', () => {
  const other = { file: 'tenants', message: 'away' };
  const state = { everyone: [other], tenants: { a: [error], b: [] } };
  assert.deepEqual(errorsFor('a', state), [other, error]);
  assert.deepEqual(errorsFor('c', state), [other]);
});

test('a place is written as editors open it', () => {
  assert.equal(placeOf(error), 'tenants/a/tenant.yaml:2:3');
  assert.equal(placeOf({ file: 'tenants/a', message: 'm' }), 'tenants/a');
});

test('the marked part of a line is counted in characters', () => {
  assert.deepEqual(marked(error), ['  ', 'nmae', ': 🙂 x']);
  assert.deepEqual(marked({ ...error, column: 9, length: 1 }), ['  nmae: ', '🙂', ' x']);
  assert.deepEqual(marked({ ...error, column: 99 }), ['  nmae: 🙂 x', ' ', '']);
  assert.equal(marked({ file: 'f', message: 'm', text: 'a stack' }), undefined);
});

test('a page that visitors do not see says why', () => {
  assert.equal(hiddenReason({ draft: '' }), 'Draft');
  assert.equal(hiddenReason({ scheduled: '2026-12-01T15:00:00Z' }), 'Scheduled for 2026-12-01 15:00 UTC');
  assert.equal(hiddenReason({ expired: '2026-12-01T15:00:00Z' }), 'Expired at 2026-12-01 15:00 UTC');
  assert.equal(hiddenReason({ page: '0a', tenant: 'a' }), undefined);
});

test('the script is not sent to visitors', () => {
  const { client } = bundle();
  for (const [name, bytes] of client) assert.doesNotMatch(String(bytes), /\.rowhouse\/events/, name);
});
