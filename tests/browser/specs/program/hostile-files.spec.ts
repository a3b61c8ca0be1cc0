/** Files of one tenant cannot affect visitors of other tenants on the same origin. */
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository } from '../../support/environment.ts';
import { serve, stop } from '../../support/program.ts';
import { expect, test } from '../../support/test.ts';

// Browsers report refusals, and a download is a navigation that never ends.
test.use({ tolerated: /./ });
test.describe.configure({ mode: 'serial' });

const SCRIPT = "document.title = 'taken'; globalThis.taken = true";
const XML = `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><script>${SCRIPT}</script></body></html>`;

const FILES: Record<string, string> = {
  'x.js': SCRIPT,
  'p.html': XML,
  'p.shtml': XML,
  'p.xhtml': XML,
  'p.xml': XML,
  'p.txt': XML,
  'p.json': XML,
};

let deployment: string;
let origin: string;
let server: ChildProcess;

const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** Returns the two possible names of a file: its own, and that of a download. */
function places(name: string, text: string): string[] {
  const [stem, extension] = name.split('.');
  return [`${stem}.${hash(text)}.${extension}`, `${stem}-${extension}.${hash(text)}.bin`].map(
    (file) => `/evil/assets/${file}`,
  );
}

async function placeOf(name: string): Promise<string> {
  for (const place of places(name, FILES[name] ?? '')) if ((await fetch(origin + place)).ok) return place;
  throw new Error(`${name} answers nowhere`);
}

test.beforeAll(async () => {
  deployment = mkdtempSync(join(tmpdir(), 'rowhouse-hostile-'));
  const evil = join(deployment, 'tenants/evil');
  for (const folder of ['pages', 'assets']) mkdirSync(join(evil, folder), { recursive: true });
  cpSync(join(repository, 'themes'), join(deployment, 'themes'), { recursive: true });
  cpSync(join(repository, 'tenants/studio'), join(deployment, 'tenants/studio'), { recursive: true });
  writeFileSync(join(evil, 'tenant.yaml'), 'name: Evil\nsettings: {house: mine.svg}\n');
  writeFileSync(
    join(evil, 'pages/index.md'),
    '---\ntitle: Evil\nsections:\n  - {kind: checklist, items: [One]}\n---\nWords.\n',
  );
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(evil, 'assets', name), text);
  const sources = places('x.js', SCRIPT).map((place) => `<script href="${place}"/>`);
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">${sources.join('')}<path d="M0 0h9v9z"/></svg>`;
  mkdirSync(join(evil, 'assets/icons'));
  for (const name of ['mine.svg', 'icons/check.svg']) writeFileSync(join(evil, 'assets', name), drawing);
  [server, origin] = await serve(deployment);
});

test.afterAll(async () => {
  await stop(server);
  rmSync(deployment, { recursive: true });
});

for (const name of Object.keys(FILES).filter((name) => name.startsWith('p.'))) {
  test(`${name} runs no script when it is opened`, async ({ page }) => {
    // A download begins, and the page stays.
    await page.goto(origin + (await placeOf(name))).catch(() => undefined);
    expect(await page.title()).not.toBe('taken');
  });
}

test('a drawing in a page of the shared origin runs nothing', async ({ page }) => {
  const response = await page.goto(`${origin}/evil`, { waitUntil: 'networkidle' });
  expect(response?.status()).toBe(200);
  await expect(page.locator('path[d="M0 0h9v9z"]').first()).toBeAttached();
  expect(await page.evaluate(() => 'taken' in globalThis)).toBe(false);
  expect(await page.title()).not.toBe('taken');
});

test('a page runs scripts only from the path of the program', async ({ page }) => {
  const policy = (await fetch(`${origin}/about`)).headers.get('content-security-policy') ?? '';
  const script = (path: string) =>
    page.route(`${origin}${path}`, (route) =>
      route.fulfill({ contentType: 'text/javascript', body: `document.body.append('${path} ');` }),
    );
  await script('/assets/own.js');
  await script('/evil/assets/own.js');
  await page.route(`${origin}/probe`, (route) =>
    route.fulfill({
      contentType: 'text/html',
      headers: { 'content-security-policy': policy },
      body: '<body><script src="/evil/assets/own.js"></script><script src="/assets/own.js"></script>',
    }),
  );
  await page.goto(`${origin}/probe`);
  await expect(page.locator('body')).toHaveText('/assets/own.js');
});
