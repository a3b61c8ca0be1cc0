/** The blog's topics: filtering the list, links to a filtered list, and links from post to post. */
import type { Locator, Page } from '@playwright/test';
import { watchNext } from '../../support/events.ts';
import { holdBack } from '../../support/hold.ts';
import { layoutShifts, recordLayoutShifts } from '../../support/checks/layout.ts';
import { canonical } from '../../support/checks/metadata.ts';
import { living, pointAt, visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

const TOPIC = 'mobile';

interface Parts {
  topics: Locator;
  status: Locator;
  entries: Locator;
  /** The visible entries. */
  shown: Locator;
}

function parts(page: Page): Parts {
  const entries = page.getByRole('main').locator('.entry');
  return {
    topics: page.getByRole('navigation', { name: 'Topics' }).getByRole('link'),
    status: page.getByRole('main').getByRole('status'),
    entries,
    shown: entries.filter({ visible: true }),
  };
}

/** Returns the tags of each entry in the list. */
function tagsOf(entries: Locator): Promise<string[][]> {
  return entries.evaluateAll((items) =>
    items.map((item) =>
      Array.from(item.querySelectorAll('.tags li'), ({ textContent }) => textContent ?? ''),
    ),
  );
}

/** Checks that the list shows exactly the entries with the topic, and says so. */
async function expectTopic(page: Page, topic: string): Promise<void> {
  const { topics, status, entries, shown } = parts(page);
  const having = (await tagsOf(entries)).filter((tags) => tags.includes(topic));
  expect(having).not.toEqual([]);
  await expect(shown).toHaveCount(having.length);
  expect((await tagsOf(shown)).every((tags) => tags.includes(topic))).toBe(true);
  await expect(status).toHaveText(`${having.length} of ${await entries.count()} shown: ${topic}`);
  await expect(topics.and(page.locator('[aria-current]'))).toHaveText(`${topic} ${having.length}`);
}

async function expectAll(page: Page, said: RegExp): Promise<void> {
  const { topics, status, entries, shown } = parts(page);
  const total = await entries.count();
  expect(total).toBeGreaterThan(1);
  await expect(shown).toHaveCount(total);
  await expect(status).toHaveText(said);
  await expect(status).toContainText(`${total}`);
  await expect(topics.and(page.locator('[aria-current]'))).toHaveText(`All ${total}`);
}

test('a click filters by a topic without a request, and the back button undoes it', async ({
  page,
  watch,
}) => {
  await visit(page, '/blog');
  await expectAll(page, /^All \d+ shown$/);
  const { topics } = parts(page);
  // A reader of the topics has the pointer on them.
  await pointAt(topics.first());
  await living(page, 'EntryFilter');
  const before = watch.calls.length;

  await topics.filter({ hasText: new RegExp(`^${TOPIC} `) }).click();
  await expect(page).toHaveURL(`/blog?tag=${TOPIC}`);
  await expectTopic(page, TOPIC);
  await topics.filter({ hasText: /^backend / }).click();
  await expectTopic(page, 'backend');
  expect(watch.calls.slice(before)).toEqual([]);
  expect(await canonical(page)).toMatch(/\/blog$/);

  await page.goBack();
  await expectTopic(page, TOPIC);
  await page.goBack();
  await expect(page).toHaveURL('/blog');
  await expectAll(page, /^All \d+ shown$/);
  await page.goForward();
  await expectTopic(page, TOPIC);
  await topics.first().click();
  await expect(page).toHaveURL('/blog');
  await expectAll(page, /^All \d+ shown$/);
});

test('every topic of every entry is offered with its number of entries', async ({ page }) => {
  await visit(page, '/blog');
  const { topics, entries } = parts(page);
  const counts = new Map<string, number>();
  const tags = await tagsOf(entries);
  for (const tag of tags.flat()) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  const expected = [`All ${tags.length}`, ...[...counts].map(([tag, count]) => `${tag} ${count}`)];
  const offered = page.getByRole('navigation', { name: 'Topics', includeHidden: true }).locator('a');
  expect((await offered.allTextContents()).sort()).toEqual(expected.sort());
  // Topics of one entry are in a closed disclosure, with their number.
  const single = [...counts.values()].filter((count) => count === 1).length;
  expect(single).toBeGreaterThan(0);
  await expect(topics.filter({ visible: true })).toHaveCount(expected.length - single);
  await page.getByText(`${single} more`).click();
  await expect(topics.filter({ visible: true })).toHaveCount(expected.length);
});

test('a topic of one entry in the address is shown among the topics', async ({ page }) => {
  await visit(page, '/blog');
  const tags = (await tagsOf(parts(page).entries)).flat();
  const single = tags.find((tag) => tags.filter((each) => each === tag).length === 1) ?? '';
  await visit(page, `/blog?tag=${encodeURIComponent(single)}`);
  await expectTopic(page, single);
  await expect(parts(page).topics.and(page.locator('[aria-current]'))).toBeVisible();
});

test('the keyboard filters by a topic and keeps its position', async ({ page }) => {
  await visit(page, '/blog');
  const { topics } = parts(page);
  const link = topics.filter({ hasText: new RegExp(`^${TOPIC} `) });
  await topics.first().focus();
  await living(page, 'EntryFilter');
  for (let step = await indexOf(topics, TOPIC); step > 0; step -= 1) await page.keyboard.press('Tab');
  await expect(link).toBeFocused();
  await page.keyboard.press('Enter');
  await expectTopic(page, TOPIC);
  await expect(link).toBeFocused();

  // With the browser's modifier key, the link is an ordinary link.
  const prevented = await watchNext(page, 'click');
  await page.keyboard.press('Control+Enter');
  expect(await prevented(), 'called off by the filter').toBe(false);
});

test('the address of a topic can be opened directly without layout shifts', async ({ page }) => {
  // The filter loads late: entries that it will hide are not visible before.
  const release = await holdBack(page, /\/EntryFilter\.\w+\.js$/);
  await recordLayoutShifts(page);
  // The list waits for a second at most, which is too short on a busy machine: its animation never starts.
  await page.addInitScript(() => {
    const paused = new CSSStyleSheet();
    paused.replaceSync('.entry-list { animation-play-state: paused !important; }');
    document.adoptedStyleSheets = [paused];
  });
  await page.goto(`/blog?tag=${TOPIC}`, { waitUntil: 'commit' });
  const { entries, shown } = parts(page);
  await expect(page.locator('html[data-asked]')).toHaveCount(1);
  await expect(entries).not.toHaveCount(0);
  await expect(shown).toHaveCount(0);

  release();
  await living(page, 'EntryFilter');
  await expectTopic(page, TOPIC);
  expect(await canonical(page)).toMatch(/\/blog$/);
  expect(await layoutShifts(page)).toEqual([]);
});

test('an unknown topic shows all entries, and says so', async ({ page }) => {
  for (const unknown of ['no-such-topic', '%3Cb%3E%22%26', '']) {
    await visit(page, `/blog?tag=${unknown}`);
    await expectAll(page, unknown ? /^Nothing has that topic\. All \d+ are shown$/ : /^All \d+ shown$/);
  }
});

test('a post links to its topics, and the way back leads to the post', async ({ page }) => {
  await visit(page, '/blog');
  const { entries } = parts(page);
  await entries.first().getByRole('heading').getByRole('link').click();
  await page.waitForURL(/\/blog\/./);
  const post = page.url();
  const topic = page.getByRole('list', { name: 'Topics' }).getByRole('link').first();
  const name = (await topic.innerText()).trim();
  await topic.click();
  await page.waitForURL(/\?tag=/);
  await expectTopic(page, name);
  await page.goBack();
  await expect(page).toHaveURL(post);
});

test.describe('without JavaScript', () => {
  test.use({ javaScriptEnabled: false });

  test('the list is complete, and no control is shown that does not work', async ({ page }) => {
    for (const path of ['/blog', `/blog?tag=${TOPIC}`]) {
      await page.goto(path);
      const { topics, entries, shown } = parts(page);
      await expect(topics.filter({ visible: true })).toHaveCount(0);
      await expect(shown).toHaveCount(await entries.count());
      expect(await canonical(page)).toMatch(/\/blog$/);
    }
  });

  test('older and newer posts are linked', async ({ page }) => {
    await page.goto('/blog');
    const titles = await parts(page).entries.getByRole('heading').allInnerTexts();
    const way = page.getByRole('navigation', { name: 'More entries' });
    const heading = page.getByRole('heading', { level: 1 });
    await parts(page).entries.first().getByRole('heading').getByRole('link').click();
    await expect(heading).toHaveText(titles[0] ?? '');
    await expect(way.getByRole('link')).toHaveText([new RegExp(titles[1] ?? '')]);
    await way.getByRole('link', { name: 'Older' }).click();
    await expect(heading).toHaveText(titles[1] ?? '');
    await way.getByRole('link', { name: 'Newer' }).click();
    await expect(heading).toHaveText(titles[0] ?? '');
  });

  test('the links of every post lead to the adjacent entries of the list', async ({ page }) => {
    await page.goto('/blog');
    const hrefs = await parts(page)
      .entries.getByRole('heading')
      .getByRole('link')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''));
    expect(hrefs.length).toBeGreaterThan(2);
    for (const [index, href] of hrefs.entries()) {
      const html = await (await page.request.get(href)).text();
      const neighbour = (rel: string) => html.match(new RegExp(`rel="${rel}" href="([^"]+)"`))?.[1];
      expect.soft(neighbour('prev'), `older than ${href}`).toBe(hrefs[index + 1]);
      expect.soft(neighbour('next'), `newer than ${href}`).toBe(hrefs[index - 1]);
    }
  });
});

/** Returns the number of links before the link of a topic. */
async function indexOf(topics: Locator, topic: string): Promise<number> {
  return (await topics.allInnerTexts()).findIndex((text) => text.startsWith(`${topic} `));
}
