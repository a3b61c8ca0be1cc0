/** What the loader does besides islands: see runtime/asked.ts, loaded.ts, missing.ts and reveal.ts. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { markAsked } from '../runtime/asked.ts';
import { markLoaded } from '../runtime/loaded.ts';
import { reportMissing } from '../runtime/missing.ts';
import { reveal } from '../runtime/reveal.ts';

/** A page of these elements, none of which has a box: the test says what is in view. */
function page(...elements: object[]) {
  let tell = (_entries: { target: object; isIntersecting: boolean }[]) => {};
  const observed = new Set<object>();
  let threshold: unknown;
  class Observer {
    constructor(callback: typeof tell, options: { threshold: unknown }) {
      tell = callback;
      threshold = options.threshold;
    }
    observe = (element: object) => observed.add(element);
    unobserve = (element: object) => observed.delete(element);
  }
  const document = { querySelectorAll: () => elements, querySelector: () => elements[0] ?? null };
  Object.assign(globalThis, { document, IntersectionObserver: Observer });
  return {
    observed,
    threshold: () => threshold,
    see: (target: object, isIntersecting: boolean) => tell([{ target, isIntersecting }]),
  };
}

function element() {
  const seen: string[] = [];
  return { seen, setAttribute: (name: string, value: string) => seen.push(`${name}=${value}`) };
}

test('an element in view from the start is never marked as unseen', () => {
  const first = element();
  const { observed, see, threshold } = page(first);
  reveal();
  assert.equal(threshold(), 0.1);
  see(first, true);
  assert.deepEqual(first.seen, ['data-seen=true']);
  assert.equal(observed.size, 0);
});

test('an element below waits, is seen once, and is then left alone', () => {
  const first = element();
  const { observed, see } = page(first);
  reveal();
  see(first, false);
  assert.equal(observed.size, 1);
  see(first, true);
  assert.deepEqual(first.seen, ['data-seen=false', 'data-seen=true']);
  assert.equal(observed.size, 0);
});

test('only the page of a missing address is reported', () => {
  const error = mock.method(console, 'error', () => {});
  Object.assign(globalThis, { location: { pathname: '/no-such-page' } });
  page();
  reportMissing();
  assert.equal(error.mock.callCount(), 0);
  page({});
  reportMissing();
  assert.deepEqual(
    error.mock.calls.map((call) => call.arguments),
    [['404: there is no page at `/no-such-page`']],
  );
  error.mock.restore();
});

test('a page is marked where one topic was asked for', () => {
  const marks: string[] = [];
  const documentElement = { toggleAttribute: (name: string, on: boolean) => marks.push(`${name}=${on}`) };
  for (const search of ['', '?page=2', '?tag=ux']) {
    Object.assign(globalThis, { document: { documentElement }, location: { search } });
    markAsked();
  }
  assert.deepEqual(marks, ['data-asked=false', 'data-asked=false', 'data-asked=true']);
});

test('a page is marked once it has loaded', () => {
  const marks: string[] = [];
  const documentElement = { toggleAttribute: (name: string, on: boolean) => marks.push(`${name}=${on}`) };
  const events = new EventTarget();
  const frames: (() => void)[] = [];
  Object.assign(globalThis, {
    document: { documentElement },
    addEventListener: events.addEventListener.bind(events),
    requestAnimationFrame: (frame: () => void) => frames.push(frame),
  });
  markLoaded();
  events.dispatchEvent(new Event('load'));
  assert.deepEqual(marks, []);
  for (const frame of frames) frame();
  assert.deepEqual(marks, ['data-loaded=true']);
});
