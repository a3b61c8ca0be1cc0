/**
 * Every address of every page over HTTPS, in a browser that trusts the certificate by a root in its store, and not by
 * an ignored error. All resources must be secure and use HTTP/2. Messages of the browser fail the test, too
 * (support/test.ts).
 *
 * `tests/deploy/https/browser.rs` starts this spec.
 */
import { address, pages } from '../../support/routes.ts';
import { expect, test } from '../../support/test.ts';

const tenants = [...new Set(pages.map(({ tenant }) => tenant))];

test('the program lists more than five tenants', () => {
  expect(tenants.length).toBeGreaterThan(5);
});

for (const tenant of tenants) {
  test(`${tenant} is loaded over HTTP/2 without a warning`, async ({ page, context }) => {
    const session = await context.newCDPSession(page);
    await session.send('Network.enable');
    const hows = new Map<string, string>();
    session.on('Network.responseReceived', ({ response }) => {
      const { protocol, securityState, securityDetails } = response;
      // Content of the document itself needs no request.
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
