/**
 * Every address of every page over HTTPS, in a browser that trusts the certificate as it trusts those of visitors:
 * by a root in its store, and not because it was told to look away. Nothing may be less than secure, and all of it
 * comes over HTTP/2. What the browser complains about meanwhile fails the test as well (support/test.ts).
 *
 * Started by `tests/deploy/browser.rs`.
 */
import { address, pages } from '../support/routes.ts';
import { expect, test } from '../support/test.ts';

const tenants = [...new Set(pages.map(({ tenant }) => tenant))];

test('there are tenants', () => {
  expect(tenants.length).toBeGreaterThan(5);
});

for (const tenant of tenants) {
  test(tenant, async ({ page, context }) => {
    const session = await context.newCDPSession(page);
    await session.send('Network.enable');
    const hows = new Map<string, string>();
    session.on('Network.responseReceived', ({ response }) => {
      const { protocol, securityState, securityDetails } = response;
      // What is in the document itself came with it.
      if (response.url.startsWith('data:')) return;
      hows.set(response.url, `${protocol} ${securityState} ${securityDetails?.protocol}`);
    });
    const addresses = pages.filter((route) => route.tenant === tenant).map((route) => address(route));
    for (const url of addresses) {
      const answer = await page.goto(url);
      expect.soft(answer?.status(), url).toBe(200);
      expect.soft(await page.evaluate(() => isSecureContext), url).toBe(true);
    }
    expect(hows.size).toBeGreaterThanOrEqual(addresses.length);
    const others = [...hows].filter(([, how]) => how !== 'h2 secure TLS 1.3');
    expect(others).toEqual([]);
  });
}
