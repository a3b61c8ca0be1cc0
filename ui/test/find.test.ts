/** The search: results in an index, and their order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { find, type Index } from '../islands/Search/find.ts';

const index: Index = {
  pages: [
    ['/guides/theme', 'A theme'],
    ['/reference/commands', 'Commands'],
  ],
  parts: [
    [0, '', '', 'colours styles layouts'],
    [0, 'colours-alone', 'Colours alone', 'contrast settings'],
    [1, '', '', 'stdout exit'],
    [1, 'serve', 'rowhouse serve', 'listen max-connections themes'],
  ],
};
const hrefs = (typed: string) => find(index, typed).map(({ href }) => href);

test('a heading comes before a word below one', () => {
  assert.deepEqual(hrefs('colours'), ['/guides/theme#colours-alone', '/guides/theme']);
});

test('the page itself comes first for its title', () => {
  assert.equal(hrefs('theme')[0], '/guides/theme');
  assert.equal(hrefs('Commands')[0], '/reference/commands');
});

test('every word must occur, in any case, at the beginning or within a word', () => {
  assert.deepEqual(hrefs('SERVE conn'), ['/reference/commands#serve']);
  assert.deepEqual(hrefs('serve nothing'), []);
  assert.deepEqual(hrefs('   '), []);
});

test('a result names its page and its heading', () => {
  assert.deepEqual(find(index, 'listen'), [
    { href: '/reference/commands#serve', title: 'Commands', heading: 'rowhouse serve' },
  ]);
});

test('the number of results is limited', () => {
  const parts: Index['parts'] = Array.from({ length: 50 }, (_, at) => [0, `a-${at}`, 'Same', '']);
  assert.equal(find({ pages: [['/', 'Home']], parts }, 'same').length, 8);
});

test('short words, words with signs and words of other scripts are found', () => {
  const index: Index = {
    pages: [['/', 'Courses']],
    parts: [[0, '', '', 'ai go c++ 大阪の店 über']],
  };
  for (const typed of ['AI', 'Go', 'C++', '大阪', 'C++, AI', 'u\u0308ber']) {
    assert.equal(find(index, typed).length, 1, typed);
  }
});
