/**
 * The loader's functions besides islands: see runtime/asked.ts, loaded.ts, missing.ts, once.ts, reveal.ts,
 * scrolled.ts.
 */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { markAsked } from '../runtime/asked.ts';
import { markLoaded } from '../runtime/loaded.ts';
import { reportMissing } from '../runtime/missing.ts';
import { showOnce } from '../runtime/once.ts';
import { reveal } from '../runtime/reveal.ts';
import { markScrolled } from '../runtime/scrolled.ts';

/** A page of these elements, none of which has a box: the test decides what is in view. */
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

test('an element below the fold is marked once it is seen, and then no longer observed', () => {
  const first = element();
  const { observed, see } = page(first);
  reveal();
  see(first, false);
  assert.equal(observed.size, 1);
  see(first, true);
  assert.deepEqual(first.seen, ['data-seen=false', 'data-seen=true']);
  assert.equal(observed.size, 0);
});

test('only a missing page is reported', () => {
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

test('a page requested with a topic is marked', () => {
  const marks: string[] = [];
  const documentElement = { toggleAttribute: (name: string, on: boolean) => marks.push(`${name}=${on}`) };
  for (const search of ['', '?page=2', '?tag=ux']) {
    Object.assign(globalThis, { document: { documentElement }, location: { search } });
    markAsked();
  }
  assert.deepEqual(marks, ['data-asked=false', 'data-asked=false', 'data-asked=true']);
});

test('a loaded page is marked, and prefetches a second later', (t) => {
  const tasks: { run: () => void; delay: number | undefined }[] = [];
  t.mock.method(globalThis, 'setTimeout', (run: () => void, delay?: number) => tasks.push({ run, delay }));
  const marks: string[] = [];
  const documentElement = { toggleAttribute: (name: string, on: boolean) => marks.push(`${name}=${on}`) };
  const links = Array.from({ length: 3 }, () => ({ rel: 'modulepreload', media: 'not all' }));
  const rels = () => links.map(({ rel }) => rel);
  const untouched = rels();
  const events = new EventTarget();
  const frames: (() => void)[] = [];
  Object.assign(globalThis, {
    document: { documentElement, querySelectorAll: () => links },
    addEventListener: events.addEventListener.bind(events),
    requestAnimationFrame: (frame: () => void) => frames.push(frame),
  });
  markLoaded();
  events.dispatchEvent(new Event('load'));
  assert.deepEqual(marks, []);
  assert.deepEqual(rels(), untouched);
  for (const frame of frames) frame();
  assert.deepEqual(marks, ['data-loaded=true']);
  const [later] = tasks.splice(0);
  assert.equal(later?.delay, 1000);
  later?.run();
  assert.deepEqual(rels(), untouched, 'each is prefetched in a task of its own');
  // Meanwhile a visitor uses an island, which compiles the modules that it needs.
  Object.assign(links[1] ?? {}, { media: '' });
  for (const { run } of tasks) run();
  assert.deepEqual(rels(), ['prefetch', 'modulepreload', 'prefetch']);
});

test('a page is scrolled from 21 px on', () => {
  const marks: string[] = [];
  const documentElement = { toggleAttribute: (name: string, on: boolean) => marks.push(`${name}=${on}`) };
  const events = new EventTarget();
  Object.assign(globalThis, {
    document: { documentElement },
    addEventListener: events.addEventListener.bind(events),
    requestAnimationFrame: (frame: () => void) => frame(),
    scrollY: 0,
  });
  markScrolled();
  for (const scrollY of [20, 21, 20]) {
    Object.assign(globalThis, { scrollY });
    events.dispatchEvent(new Event('scroll'));
  }
  assert.deepEqual(marks, [
    'data-scrolled=false',
    'data-scrolled=false',
    'data-scrolled=true',
    'data-scrolled=false',
  ]);
});

test('a notice is shown until its key is stored, and if storage is blocked', () => {
  const notice = { hidden: true, dataset: { once: 'answer' } };
  Object.assign(globalThis, { document: { querySelectorAll: () => [notice] } });
  const storage = (localStorage: PropertyDescriptor) =>
    Object.defineProperty(globalThis, 'localStorage', { configurable: true, ...localStorage });
  const blocked = () => {
    throw new Error('blocked');
  };
  for (const [kept, hidden] of [
    [{ value: {} }, false],
    [{ value: { answer: 'accepted' } }, true],
    [{ value: { other: 'accepted' } }, false],
    [{ get: blocked }, false],
  ] as const) {
    storage(kept);
    notice.hidden = true;
    showOnce();
    assert.equal(notice.hidden, hidden);
  }
});
