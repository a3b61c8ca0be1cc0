/** The script of the console: see runtime/console. Its behaviour is tested in a browser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bundle } from './bundle.ts';

const { client, console: script } = bundle();

test('the script is small and not sent to visitors', () => {
  assert.match(script, /data-command/);
  assert.ok(script.length < 8_000, `${script.length} bytes`);
  for (const [name, bytes] of client) assert.doesNotMatch(String(bytes), /data-command/, name);
});

test('the script does not turn text into HTML', () => {
  assert.doesNotMatch(script, /innerHTML|insertAdjacentHTML|parseFromString|document\.write|eval\(/);
});
