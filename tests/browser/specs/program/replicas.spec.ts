/** The console's page of the replicas that follow one bucket, at all widths by day and by night. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expectNoViolations } from '../../support/checks/axe.ts';
import { sidewaysOverflow } from '../../support/checks/layout.ts';
import { bucketAddress, ObjectStore } from '../../support/object-store.ts';
import { start, stop } from '../../support/program.ts';
import { expect, test } from '../../support/test.ts';

test.describe.configure({ mode: 'serial' });

const store = new ObjectStore();
let folder: string;
let admin: string;
let server: ChildProcess;

/** Writes the heartbeat of another replica. */
function beat(id: string, host: string, secondsAgo: number, more: object): void {
  const at = Math.floor(Date.now() / 1_000) - secondsAgo;
  const heartbeat = {
    host,
    version: '0.1.9',
    started: at - 90_000,
    at,
    sequence: 0,
    tenants: 6,
    problems: 0,
  };
  store.write(`v1/replicas/${id}`, JSON.stringify({ ...heartbeat, ...more }), secondsAgo);
}

test.beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rowhouse-replicas-'));
  await store.start();
  // The program has the environment of this process.
  Object.assign(process.env, store.variables);
  beat('1f'.repeat(16), 'rowhouse-7c9f5d6b48-x2x7q', 12, { tenants: 16_384, dormant: 983_616 });
  beat('2e'.repeat(16), 'rowhouse-7c9f5d6b48-k5l4m', 3_900, { problems: 2 });
  [server, , admin] = await start(
    folder,
    'serve',
    '--store',
    bucketAddress,
    '--state',
    'state',
    '--admin',
    '127.0.0.1:0',
  );
});

test.afterAll(async () => {
  await stop(server);
  store.stop();
  rmSync(folder, { recursive: true });
});

for (const colorScheme of ['light', 'dark'] as const) {
  test.describe(colorScheme, () => {
    test.use({ colorScheme });

    test('the replicas are listed at all widths', async ({ page }) => {
      for (const width of [360, 768, 1280]) {
        await page.setViewportSize({ width, height: 800 });
        await page.goto(`${admin}/replicas`);
        await expect(page.getByRole('heading', { level: 1 })).toHaveText('1 of 3 replicas is silent');
        await expect(page.getByRole('row')).toHaveCount(4);
        const silent = page.getByRole('row', { name: /k5l4m/ });
        await expect(silent.getByRole('cell', { name: 'silent' })).toBeVisible();
        await expect(silent.locator('[data-name="Problems"]')).toBeInViewport();
        expect(await sidewaysOverflow(page), `${width} px`).toEqual([]);
        await expectNoViolations(page, `replicas, ${width} px`);
      }
    });
  });
}
