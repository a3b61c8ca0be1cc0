/**
 * `test` with a watch on every page: each message of the browser fails the test. A test that causes messages on purpose
 * tolerates them:
 *
 *     test.use({ tolerated: /404/ });
 */
import { test as base, expect, type Page } from '@playwright/test';
import { lastLogged } from './program.ts';

export { expect };

interface Watched {
  /** Messages that the test expects. */
  tolerated: RegExp | undefined;
  watch: Watch;
}

export interface Watch {
  /** The problems so far. */
  readonly problems: string[];
  /** The URLs of requests so far that could carry a visitor's text: all except scripts, styles, fonts and images. */
  readonly calls: string[];
}

/** Chromium's message for a view transition that comes too late. */
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

/** Prints the messages of the browser and the programs for a failed test, since a rare failure may not repeat. */
function tell(title: string, { problems, calls }: Watch): void {
  for (const line of [`FAILED: ${title}`, ...problems, ...calls, ...lastLogged()]) console.log(line);
}

/** Collects console messages, errors, policy violations, failed requests, and requests to other origins. */
async function watchOver(page: Page): Promise<Watch> {
  const watch: Watch = { problems: [], calls: [] };
  const report = (problem: string) => watch.problems.push(problem);

  page.on('console', (message) => report(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => {
    // A busy browser may show the next page before it has the image of the last one. It then skips the view transition,
    // and rejects a promise that no page can handle.
    if (error.message !== LATE_TRANSITION) report(`uncaught: ${error.message}`);
  });
  page.on('request', (request) => {
    if (CALLS.includes(request.resourceType())) watch.calls.push(request.url());
    const home = request.isNavigationRequest() ? request.url() : request.frame().url();
    if (new URL(request.url()).origin !== new URL(home).origin) report(`other origin: ${request.url()}`);
  });
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? '';
    // The visitor left the page.
    if (reason !== 'net::ERR_ABORTED') report(`failed: ${request.url()} ${reason}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) report(`status ${response.status()}: ${response.url()}`);
  });
  // The console reports blocked resources, which the code above collects.
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI, sourceFile }) =>
      console.error(`policy violation: ${effectiveDirective} ${blockedURI} ${sourceFile}`),
    );
  });
  return watch;
}
