/** The gallery of `rowhouse serve --dev`: the example of every section type of each theme, checked by axe. */
import type { ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expectNoViolations } from '../../support/checks/axe.ts';
import { repository } from '../../support/environment.ts';
import { serve, stop } from '../../support/program.ts';
import { expect, test } from '../../support/test.ts';

test.describe.configure({ mode: 'serial' });

const themes = ['base', 'plain'];
const kinds = (theme: string) =>
  readdirSync(join(repository, 'themes', theme, 'sections'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);

let place: string;
let origin: string;
let server: ChildProcess;

/** Writes a theme with a section type that is 500 pixels wide, and a site that uses the theme. */
function writeWide() {
  const files = {
    'themes/wide/theme.yaml': 'name: wide\nparent: plain\nlanguages: [en]\n',
    'themes/wide/sections/wide/schema.yaml': 'description: A strip.\nproperties: {}\n',
    'themes/wide/sections/wide/section.html': '<section class="strip">A strip</section>\n',
    'themes/wide/sections/wide/section.css': '@layer sections {\n  .strip { inline-size: 500px; }\n}\n',
    'themes/wide/sections/wide/example.yaml': 'title: A strip\n',
    'tenants/wide/tenant.yaml': 'name: Gallery\ntheme: wide\n',
    'tenants/wide/pages/index.md': '---\ntitle: Gallery\n---\nSome words.\n',
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place, path)), { recursive: true });
    writeFileSync(join(place, path), text);
  }
}

test.beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'rowhouse-gallery-'));
  cpSync(join(repository, 'themes'), join(place, 'themes'), { recursive: true });
  for (const theme of themes) {
    const pages = join(place, 'tenants', theme, 'pages');
    mkdirSync(pages, { recursive: true });
    writeFileSync(join(place, 'tenants', theme, 'tenant.yaml'), `name: Gallery\ntheme: ${theme}\n`);
    writeFileSync(join(pages, 'index.md'), '---\ntitle: Gallery\n---\nSome words.\n');
  }
  writeWide();
  [server, origin] = await serve(place, '--dev');
});

test.afterAll(async () => {
  await stop(server);
  rmSync(place, { recursive: true });
});

for (const theme of themes) {
  test(`the gallery of ${theme} lists every section type with its keys, and shows it at three widths by day and by night`, async ({
    page,
  }) => {
    await page.goto(`${origin}/${theme}/_gallery`);
    await expect(page.locator('section h2')).toHaveText(kinds(theme).sort());
    for (const kind of kinds(theme)) {
      const section = page.locator(`#${kind}`);
      await expect(section.locator('tbody tr')).not.toHaveCount(0);
      await expect(section.locator('iframe')).toHaveCount(6);
    }
    const frame = page.frameLocator('iframe').first();
    await expect(frame.locator('main')).not.toBeEmpty();
    await expectNoViolations(page, `the gallery of ${theme}`);
  });

  for (const kind of kinds(theme))
    for (const time of ['day', 'night'])
      test(`the section type ${kind} of ${theme} passes by ${time}`, async ({ page }) => {
        await page.goto(`${origin}/${theme}/_gallery/${kind}/${time}`);
        await expect(page.locator('main > *')).not.toHaveCount(0);
        for (const width of [360, 768, 1280]) {
          await page.setViewportSize({ width, height: 800 });
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          expect(overflow, `${width} px`).toBeLessThanOrEqual(0);
        }
        await expectNoViolations(page, `${kind} by ${time}`);
      });
}

test('the gallery warns of a section type that is wider than a screen, in the caption of that frame only', async ({
  page,
}) => {
  await page.goto(`${origin}/wide/_gallery`);
  const captions = (kind: string) => page.locator(`#${kind} figcaption`);
  const warned = [' Scrolls sideways by 140 pixels', '', ''];
  for (const [kind, warnings] of [
    ['wide', warned],
    ['prose', ['', '', '']],
  ] as const) {
    const frames = page.locator(`#${kind} iframe`);
    for (let index = 0; index < 6; index++) {
      await frames.nth(index).scrollIntoViewIfNeeded();
      await expect(frames.nth(index).contentFrame().locator('main')).not.toBeEmpty();
    }
    const expected = ['day', 'night'].flatMap((time) =>
      [360, 768, 1280].map((width, index) => `By ${time}, ${width} pixels${warnings[index]}`),
    );
    await expect(captions(kind)).toHaveText(expected);
  }
});
