/** Late images: they cause no layout shift, and their main colour is shown until then. */
import type { ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import { repository } from '../../support/environment.ts';
import { holdBack } from '../../support/hold.ts';
import { layoutShifts, recordLayoutShifts } from '../../support/checks/layout.ts';
import { serve, stop } from '../../support/program.ts';
import { expect, test } from '../../support/test.ts';

test.describe.configure({ mode: 'serial' });

const WIDTH = 800;
const HEIGHT = 600;

let folder: string;
let origin: string;
let server: ChildProcess;

/** Makes a PNG of red with a little noise, so that smaller sizes are worth it. */
function picture(): Buffer {
  const chunk = (kind: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(WIDTH, 0);
  header.writeUInt32BE(HEIGHT, 4);
  // Eight bits for each of red, green and blue.
  header.set([8, 2, 0, 0, 0], 8);
  const rows = Buffer.alloc((WIDTH * 3 + 1) * HEIGHT);
  let state = 1;
  for (let y = 0; y < HEIGHT; y += 1) {
    for (let x = 0; x < WIDTH; x += 1) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      rows.set([200 + (state >>> 29), 30, 40 + (state >>> 29)], y * (WIDTH * 3 + 1) + 1 + x * 3);
    }
  }
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const data = chunk('IDAT', deflateSync(rows));
  return Buffer.concat([signature, chunk('IHDR', header), data, chunk('IEND', Buffer.alloc(0))]);
}

test.beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rowhouse-pictures-'));
  const tenant = join(folder, 'tenants/corner');
  for (const part of ['pages', 'assets']) mkdirSync(join(tenant, part), { recursive: true });
  cpSync(join(repository, 'themes'), join(folder, 'themes'), { recursive: true });
  cpSync(join(repository, 'tenants/studio'), join(folder, 'tenants/studio'), { recursive: true });
  writeFileSync(join(tenant, 'tenant.yaml'), 'name: Corner\n');
  const text = 'Words before and behind. '.repeat(20);
  writeFileSync(
    join(tenant, 'pages/index.md'),
    `---\ntitle: Corner\n---\n![A red wall](wall.png)\n\n${text}\n\n![The same](wall.png)\n\n${text}\n`,
  );
  writeFileSync(join(tenant, 'assets/wall.png'), picture());
  [server, origin] = await serve(folder);
});

test.afterAll(async () => {
  await stop(server);
  rmSync(folder, { recursive: true });
});

for (const width of [360, 1280]) {
  test(`late images cause no layout shift at ${width} px`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    const release = await holdBack(page, /\/assets\/wall\./);
    await recordLayoutShifts(page);
    await page.goto(`${origin}/corner`, { waitUntil: 'domcontentloaded' });
    const first = page.getByRole('img', { name: 'A red wall' });
    const box = await first.boundingBox();
    // Three quarters of its width, before its first byte.
    expect((box?.height ?? 0) / (box?.width ?? 1)).toBeCloseTo(HEIGHT / WIDTH, 2);
    expect(await first.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(0);
    await expect(first).toHaveCSS('background-color', /rgb\(20\d, 30, 4\d\)/);
    release();
    for (const name of ['A red wall', 'The same']) {
      const image = page.getByRole('img', { name });
      await image.scrollIntoViewIfNeeded();
      await expect
        .poll(() => image.evaluate((image: HTMLImageElement) => image.complete && image.naturalWidth > 0))
        .toBe(true);
    }
    // Shifts are reported with the next frame.
    await page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    expect(await layoutShifts(page)).toEqual([]);
  });
}
