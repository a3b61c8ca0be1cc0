/** The list of toasts, and the bus that owns one. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { current, REMOVAL_DELAY, subscribe, toast } from '../shared/toast.ts';
import { reduce, type Toast } from '../shared/toast-state.ts';

const shown = (id: string, more: Partial<Toast> = {}): Toast => ({ id, title: id, open: true, ...more });

test('only the newest toast is shown', () => {
  const first = reduce([], { type: 'add', toast: shown('a') });
  assert.deepEqual(reduce(first, { type: 'add', toast: shown('b') }), [shown('b')]);
});

test('an update changes only the given fields', () => {
  const changed = reduce([shown('a')], { type: 'update', id: 'a', options: { title: 'other' } });
  assert.deepEqual(changed, [shown('a', { title: 'other' })]);
});

test('a dismissed toast is closed, then removed', () => {
  const closed = reduce([shown('a')], { type: 'dismiss', id: 'a' });
  assert.deepEqual(closed, [shown('a', { open: false })]);
  assert.deepEqual(reduce(closed, { type: 'remove', id: 'a' }), []);
});

test('events that change nothing return the same list', () => {
  const list = [shown('a', { open: false })];
  assert.equal(reduce(list, { type: 'dismiss', id: 'a' }), list);
  assert.equal(reduce(list, { type: 'dismiss', id: 'gone' }), list);
  assert.equal(reduce(list, { type: 'remove', id: 'gone' }), list);
  assert.equal(reduce(list, { type: 'update', id: 'gone', options: { title: 'x' } }), list);
});

test('the bus shows, updates, dismisses, and removes after the delay', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  let changes = 0;
  const stop = subscribe(() => {
    changes += 1;
  });
  const handle = toast({ title: 'Saved' });
  handle.update({ description: 'All of it.' });
  assert.deepEqual(current(), [{ id: handle.id, title: 'Saved', description: 'All of it.', open: true }]);
  handle.dismiss();
  handle.dismiss();
  assert.equal(current()[0]?.open, false);
  assert.equal(changes, 3);
  mock.timers.tick(REMOVAL_DELAY - 1);
  assert.equal(current().length, 1);
  mock.timers.tick(1);
  assert.equal(current().length, 0);
  stop();
  mock.timers.reset();
});

test('an action without label or alternative text is logged and left out', () => {
  const error = mock.method(console, 'error', () => {});
  toast({ title: 'Hidden', action: { label: ' ', altText: '' } });
  assert.equal(current()[0]?.action, undefined);
  assert.deepEqual(
    error.mock.calls.map((call) => call.arguments),
    [['the action of toast `Hidden` has an empty `label` and an empty `altText`: it is left out']],
  );
  error.mock.restore();
});
