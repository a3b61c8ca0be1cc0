/**
 * `test` with a watch on every page: whatever a visitor's browser would complain about fails the test, whichever
 * test it is. A test that provokes something on purpose says what it tolerates:
 *
 *     test.use({ tolerated: /404/ });
 */
import { test as base, expect, type Page } from '@playwright/test';
import { lastLogged } from './program.ts';

export { expect };

interface Watched {
  /** Problems that belong to the test. */
  tolerated: RegExp | undefined;
  watch: Watch;
}

export interface Watch {
  /** What went wrong so far. */
  readonly problems: string[];
  /** The URLs of all requests so far that could carry what a visitor typed: not those for scripts, styles, fonts, pictures. */
  readonly calls: string[];
}

/** Chromium's words for an animation between two pages that came too late. */
const LATE_TRANSITION = 'Transition was aborted because of invalid state. Page already revealed';

const CALLS = ['document', 'fetch', 'xhr', 'ping', 'websocket', 'eventsource'];

export const test = base.extend<Watched>({
  tolerated: [undefined, { option: true }],
  watch: [
    async ({ page, tolerated }, use, testInfo) => {
      const watch = await watchOver(page);
      await use(watch);
      if (testInfo.status !== testInfo.expectedStatus) tell(testInfo.title, watch);
      const untold = watch.problems.filter((problem) => !tolerated?.test(problem));
      expect.soft(untold, 'no complaint of the browser').toEqual([]);
    },
    { auto: true },
  ],
});

/** Says of a test that failed what the browser and the programs did: a failure that is rare is seen once. */
function tell(title: string, { problems, calls }: Watch): void {
  for (const line of [`FAILED: ${title}`, ...problems, ...calls, ...lastLogged()]) console.log(line);
}

/** Collects console messages, errors, policy violations, failed requests, and requests to other origins. */
async function watchOver(page: Page): Promise<Watch> {
  const watch: Watch = { problems: [], calls: [] };
  const report = (problem: string) => watch.problems.push(problem);

  page.on('console', (message) => report(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => {
    // A busy browser shows the next page before it has the picture of the last one. It leaves out its animation between
    // the two, and tells that as a rejection which no page has a handle for (w3c/csswg-drafts, issue 13726).
    if (error.message !== LATE_TRANSITION) report(`uncaught: ${error.message}`);
  });
  page.on('request', (request) => {
    if (CALLS.includes(request.resourceType())) watch.calls.push(request.url());
    const home = request.isNavigationRequest() ? request.url() : request.frame().url();
    if (new URL(request.url()).origin !== new URL(home).origin) report(`other origin: ${request.url()}`);
  });
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? '';
    // The page was left.
    if (reason !== 'net::ERR_ABORTED') report(`failed: ${request.url()} ${reason}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) report(`status ${response.status()}: ${response.url()}`);
  });
  // What the policy blocks is told to the console, and so is collected above.
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI, sourceFile }) =>
      console.error(`policy violation: ${effectiveDirective} ${blockedURI} ${sourceFile}`),
    );
  });
  return watch;
}
