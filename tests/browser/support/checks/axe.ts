/**
 * WCAG 2.0 to 2.2, levels A and AA, as far as axe can check. axe-core is injected into the page once: Playwright's
 * evaluation ignores the page's policy, and the page itself stays unchanged.
 */
import { expect, type Page } from '@playwright/test';
import axe from 'axe-core';

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

declare global {
  interface Window {
    axe?: typeof axe;
  }
}

/** `state` names the state of the page in messages. */
export async function expectNoViolations(page: Page, state: string): Promise<void> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source);
  const { judged, found } = await page.evaluate(async (tags) => {
    if (!window.axe) throw new Error('axe-core did not start');
    const { passes, violations } = await window.axe.run(document, {
      runOnly: { type: 'tag', values: tags },
      resultTypes: ['violations'],
    });
    const found = violations.flatMap(({ id, help, nodes }) =>
      nodes.map(({ target, any }) => `${id}: ${help}: ${target.join(' ')} ${any[0]?.message ?? ''}`),
    );
    return { judged: passes.length, found };
  }, TAGS);
  expect(judged, 'rules that axe found something to judge by').toBeGreaterThan(5);
  expect.soft(found, `axe, ${state}`).toEqual([]);
}
