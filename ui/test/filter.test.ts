/** The filter of a list of entries: topics, their addresses, the status, and the store of the choice. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { chosenTag, go, onPlace } from '../islands/EntryFilter/place.ts';
import { folded, statusText, topicHref, topicsOf } from '../islands/EntryFilter/topics.ts';
import { languageOf } from '../shared/language.ts';
import { entryFilter } from './samples.ts';

test('topics are sorted by frequency, then by name', () => {
  const entries = [['ux', 'tv'], ['tv', 'api', 'tv'], [], ['ux', 'tv']];
  assert.deepEqual(topicsOf(entries), [
    { tag: 'tv', count: 3 },
    { tag: 'ux', count: 2 },
    { tag: 'api', count: 1 },
  ]);
  assert.deepEqual(topicsOf([]), []);
});

test('topics of a single entry are apart, unless there are no others', () => {
  const [tv, api, ux] = [
    { tag: 'tv', count: 2 },
    { tag: 'api', count: 1 },
    { tag: 'ux', count: 1 },
  ];
  assert.deepEqual(folded([tv, api, ux]), { frequent: [tv], single: [api, ux] });
  assert.deepEqual(folded([api, ux]), { frequent: [api, ux], single: [] });
});

test('the address of a topic keeps every character', () => {
  const href = topicHref('/studio/blog', 'R&D + más #1');
  assert.equal(href, '/studio/blog?tag=R%26D%20%2B%20m%C3%A1s%20%231');
  assert.equal(new URL(href, 'http://a.example').searchParams.get('tag'), 'R&D + más #1');
});

test('the status covers all entries, one topic and an unknown topic', () => {
  const say = (total: number, tag: string | null, count?: number) =>
    statusText(
      entryFilter.labels,
      languageOf('en'),
      total,
      tag,
      tag !== null && count ? { tag, count } : undefined,
    );
  assert.equal(say(25, null), 'All 25 are shown');
  assert.equal(say(1, null), 'The one is shown');
  assert.equal(say(25, 'ux', 6), '6 of 25 are shown: ux');
  assert.equal(say(2500, '{total}', 1), '1 of 2,500 is shown: {total}');
  assert.equal(say(25, 'no such'), 'Nothing has that topic. All 25 are shown');
});

/** The parts of a browser that the store needs. */
const browser = {
  location: new URL('http://a.example/blog'),
  pushed: [] as string[],
  popstate: new Set<() => void>(),
};
const history = {
  pushState: (_state: null, _title: string, href: string) => {
    browser.pushed.push(href);
    browser.location.href = new URL(href, browser.location).href;
  },
};
const window = {
  addEventListener: (_type: 'popstate', listener: () => void) => browser.popstate.add(listener),
  removeEventListener: (_type: 'popstate', listener: () => void) => browser.popstate.delete(listener),
};
Object.assign(globalThis, { location: browser.location, history, window });

beforeEach(() => {
  browser.location.href = 'http://a.example/blog';
  browser.pushed = [];
});

test('an empty topic in the address counts as none', () => {
  assert.equal(chosenTag(), null);
  browser.location.search = '?tag=';
  assert.equal(chosenTag(), null);
  browser.location.search = '?page=2&tag=R%26D';
  assert.equal(chosenTag(), 'R&D');
});

test('changing the address notifies listeners, an equal address does not', () => {
  let told = 0;
  const stop = onPlace(() => {
    told += 1;
  });
  go('/blog?tag=ux');
  go('http://a.example/blog?tag=ux');
  assert.deepEqual([chosenTag(), told, browser.pushed], ['ux', 1, ['/blog?tag=ux']]);
  for (const listener of browser.popstate) listener();
  assert.equal(told, 2);
  stop();
  go('/blog');
  assert.deepEqual([told, browser.popstate.size], [2, 0]);
});
