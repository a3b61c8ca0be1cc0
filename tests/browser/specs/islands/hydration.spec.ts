/**
 * One page with each combination of islands, with React's development build, which reports mismatches: hydration reuses
 * every node of the server's HTML without a message. Messages fail the test in support/test.ts.
 */
import { developmentSite } from '../../support/environment.ts';
import { address, canonicalPages, label, type Route } from '../../support/routes.ts';
import { allLiving, ISLANDS, turnToIslands, visit } from '../../support/settle.ts';
import { expect, test } from '../../support/test.ts';

declare global {
  interface Window {
    served: { island: Element; nodes: Node[] }[];
  }
}

/** A recommendation of React's development build, once for each page. It proves that this is the development build. */
const HINT = /Download the React DevTools/;

test.use({ tolerated: HINT });

test('every combination of islands hydrates without a change of its nodes', async ({ page, watch }) => {
  test.slow();
  // Module scripts run directly after this event: the document is complete and unchanged.
  await page.addInitScript((all) => {
    document.addEventListener('readystatechange', () => {
      if (document.readyState !== 'interactive') return;
      const descendants = (root: Node): Node[] =>
        [...root.childNodes].flatMap((node) => [node, ...descendants(node)]);
      window.served = [...document.querySelectorAll(`${all}:not([render="browser"])`)].map((island) => ({
        island,
        nodes: descendants(island),
      }));
    });
  }, ISLANDS);

  for (const route of await oneOfEachCombination()) {
    const before = watch.problems.length;
    await visit(page, address(route, developmentSite));
    await turnToIslands(page);
    await allLiving(page);

    const islands = await page.evaluate(() =>
      window.served.map(({ island, nodes }) => ({
        name: island.getAttribute('name'),
        state: island.getAttribute('data-state'),
        served: nodes.length > 0,
        lost: nodes.filter((node) => !island.contains(node)).map((node) => node.textContent?.slice(0, 60)),
      })),
    );
    expect(watch.problems.slice(before), label(route)).toContainEqual(expect.stringMatching(HINT));
    expect(islands, label(route)).not.toEqual([]);
    for (const { name, state, served, lost } of islands) {
      expect
        .soft({ state, served, lost }, `${name} at ${label(route)}`)
        .toEqual({ state: 'ready', served: true, lost: [] });
    }
  }
});

/** Returns the first page with each combination of islands in the served HTML. */
async function oneOfEachCombination(): Promise<Route[]> {
  const combinations = new Map<string, Route>();
  for (const route of canonicalPages) {
    const response = await fetch(address(route, developmentSite));
    expect(response.status, label(route)).toBe(200);
    const names = [...(await response.text()).matchAll(/<row-island [^>]*>/g)].map(
      ([tag]) => / name="\w+"/.exec(tag)?.[0],
    );
    const combination = names.sort().join();
    if (!combinations.has(combination)) combinations.set(combination, route);
  }
  // Every page has the header and the consent notice, and only some pages have a form.
  expect(combinations.size).toBeGreaterThan(1);
  return [...combinations.values()];
}
