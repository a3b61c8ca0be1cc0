/** A press counts once, whatever is replaced while it is in progress. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { keepPress, type Successor } from '../runtime/press.ts';

/** A control of an island; `clicks` counts the clicks that were sent to it. */
class Control {
  clicks = 0;
  constructor(
    readonly selector = 'button',
    private readonly active = false,
  ) {}
  closest = (): Control => this;
  matches = (selector: string) =>
    selector === ':active' ? this.active : selector !== ':disabled' && selector.includes(this.selector);
  dispatchEvent = () => {
    this.clicks += 1;
  };
  focus = () => {};
}

/** An island of these controls, and the window that it is in. */
function island(...controls: Control[]) {
  const window = new EventTarget();
  Object.assign(globalThis, {
    addEventListener: window.addEventListener.bind(window),
    removeEventListener: window.removeEventListener.bind(window),
    MouseEvent: Event,
    HTMLElement: Control,
  });
  const element = { querySelectorAll: () => controls, contains: () => true } as unknown as Element;
  const carry = keepPress(element);
  const send = (type: string, target: Control, fields: object = { button: 0 }) => {
    const event = new Event(type);
    Object.defineProperties(event, { target: { value: target }, isTrusted: { value: true } });
    window.dispatchEvent(Object.assign(event, fields));
  };
  const replace = (old: Control, control: Control) =>
    carry(((of: unknown) => (of === old ? control : of)) as Successor);
  return { send, replace };
}

test('a press that is in progress while its control is replaced counts once', async () => {
  for (const isActive of [true, false]) {
    const [old, control] = [new Control('button', isActive), new Control()];
    const { send, replace } = island(old);
    // A press that began before the script is known by the control's state.
    if (!isActive) send('mousedown', old);
    replace(old, control);
    await wait();
    assert.equal(control.clicks, 0);
    send('mouseup', control);
    await wait();
    send('mouseup', control);
    await wait();
    assert.deepEqual([old.clicks, control.clicks], [0, 1]);
  }
});

test('a press that ends before its control is known to be replaced counts then', async () => {
  const [old, control] = [new Control(), new Control()];
  const { send, replace } = island(old);
  send('mousedown', old);
  send('mouseup', control);
  await wait();
  assert.equal(control.clicks, 0);
  replace(old, control);
  await wait();
  assert.equal(control.clicks, 1);
});

test('a press that itself triggers the replacement counts once', async () => {
  // The order of events in Chromium when a listener of the first event replaces its target.
  const mouse = { button: 0, pointerType: 'mouse' };
  for (const replaces of ['pointerdown', 'pointerup'] as const) {
    const [old, control, around] = [new Control(), new Control(), new Control()];
    Object.assign(around, { closest: () => null });
    const { send, replace } = island(old);
    send('pointerdown', old, mouse);
    if (replaces === 'pointerdown') replace(old, control);
    send('mousedown', replaces === 'pointerdown' ? around : old);
    const [pointer, rest] = replaces === 'pointerdown' ? [control, control] : [old, around];
    send('pointerup', pointer, mouse);
    if (replaces === 'pointerup') replace(old, control);
    send('mouseup', rest);
    await wait();
    assert.deepEqual([old.clicks, control.clicks], [0, 1], replaces);
  }
});

test('a finger that scrolls presses nothing', async () => {
  const [old, control] = [new Control(), new Control()];
  const { send, replace } = island(old);
  const touch = { button: 0, pointerType: 'touch' };
  send('pointerdown', old, touch);
  replace(old, control);
  send('pointerup', control, touch);
  await wait();
  assert.equal(control.clicks, 0);
});

test('a press that the browser clicks is not clicked again', async () => {
  const [old, control] = [new Control(), new Control()];
  const { send, replace } = island(old);
  send('mousedown', old);
  send('mouseup', old);
  send('click', old);
  replace(old, control);
  send('mousedown', control);
  send('mouseup', control);
  send('click', control);
  await wait();
  assert.deepEqual([old.clicks, control.clicks], [0, 0]);
});

test('a press that ends elsewhere, or becomes a menu or a drag, does not click', async () => {
  for (const other of ['mouseup', 'contextmenu', 'dragstart']) {
    const [old, control, beside] = [new Control(), new Control(), new Control()];
    const { send, replace } = island(old, beside);
    send('mousedown', old);
    replace(old, control);
    send(other, beside);
    send('mouseup', control);
    await wait();
    assert.deepEqual([old.clicks, control.clicks, beside.clicks], [0, 0, 0], other);
  }
});

test('the other buttons of a mouse press nothing', async () => {
  const [old, control] = [new Control(), new Control()];
  const { send, replace } = island(old);
  send('mousedown', old, { button: 1 });
  replace(old, control);
  send('mouseup', control, { button: 1 });
  await wait();
  assert.equal(control.clicks, 0);
});

test('the space bar presses a button, and writes into a field', async () => {
  for (const [selector, clicks] of [
    ['button', 1],
    ['textarea', 0],
  ] as const) {
    const [old, control] = [new Control(selector), new Control(selector)];
    const { send, replace } = island(old);
    send('keydown', old, { key: ' ' });
    send('keydown', old, { key: 'a' });
    replace(old, control);
    send('keyup', control, { key: 'a' });
    send('keyup', control, { key: ' ' });
    await wait();
    assert.equal(control.clicks, clicks, selector);
  }
});
