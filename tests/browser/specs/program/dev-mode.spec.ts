/** `rowhouse serve --dev` in a real browser: an author's view while saving files. */
import type { ChildProcess } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { repository } from '../../support/environment.ts';
import { serve, stop } from '../../support/program.ts';
import { expect, test } from '../../support/test.ts';

// The tests request missing pages on purpose.
test.use({
  tolerated:
    /status (404|503)|Failed to load resource|404: there is no page|ERR_CONNECTION_REFUSED|ERR_FAILED/,
});
test.describe.configure({ mode: 'serial' });

let deployment: string;
let origin: string;
let server: ChildProcess;

const path = (file: string) => join(deployment, file);
const edit = (file: string, from: string, to: string) => {
  const text = readFileSync(path(file), 'utf8');
  expect(text, file).toContain(from);
  writeFileSync(path(file), text.replace(from, to));
};

test.beforeAll(async () => {
  deployment = mkdtempSync(join(tmpdir(), 'rowhouse-dev-'));
  cpSync(join(repository, 'themes'), path('themes'), { recursive: true });
  for (const tenant of ['studio', 'bluedoor'])
    cpSync(join(repository, 'tenants', tenant), path(`tenants/${tenant}`), { recursive: true });
  [server, origin] = await serve(deployment, '--dev');
});

test.afterAll(async () => {
  await stop(server);
  rmSync(deployment, { recursive: true });
});

/** Marks the document. A document that still has the mark was not reloaded. */
const mark = (page: Page) => page.evaluate(() => document.documentElement.setAttribute('data-marked', ''));
const isMarked = (page: Page) => page.evaluate(() => document.documentElement.hasAttribute('data-marked'));
const outline = (page: Page) => page.evaluate(() => getComputedStyle(document.body).outlineWidth);
const patience = { timeout: 40_000 };

test('a change of styles keeps the scroll position and typed text', async ({ page }) => {
  await page.goto(`${origin}/contact`);
  const field = page.locator('input:visible').first();
  await field.fill('typed words');
  const scroll = () => page.evaluate(() => scrollY);
  await page.evaluate(() => scrollTo({ top: 250, behavior: 'instant' }));
  expect(await scroll()).toBe(250);
  await mark(page);
  writeFileSync(
    path('themes/base/css/tokens.css'),
    `${readFileSync(path('themes/base/css/tokens.css'), 'utf8')}\nbody { outline: 7px solid; }\n`,
  );
  await expect.poll(() => outline(page), patience).toBe('7px');
  expect(await isMarked(page), 'not loaded again').toBe(true);
  expect(await field.inputValue()).toBe('typed words');
  expect(await scroll()).toBe(250);
});

test('changed text reloads only pages with that text', async ({ page, context }) => {
  const neighbour = await context.newPage();
  await page.goto(`${origin}/bluedoor/terms`);
  await neighbour.goto(`${origin}/contact`);
  await mark(page);
  await mark(neighbour);
  edit('tenants/bluedoor/pages/terms.md', '\n---\n', '\n---\n\nNew words for the test.\n');
  await expect(page.getByText('New words for the test.')).toBeVisible(patience);
  expect(await isMarked(page)).toBe(false);
  expect(await isMarked(neighbour)).toBe(true);
});

test('a change is shown although the first request for the state failed', async ({ page }) => {
  await page.goto(`${origin}/bluedoor/terms`);
  let failures = 0;
  await page.route(`${origin}/bluedoor/terms`, (route) => {
    failures += 1;
    return failures > 2 ? route.continue() : route.abort();
  });
  edit('tenants/bluedoor/pages/terms.md', 'New words for the test.', 'Newer words for the test.');
  await expect(page.getByText('Newer words for the test.')).toBeVisible(patience);
  expect(failures).toBeGreaterThan(2);
});

test('an error is shown over the last valid page until it is corrected', async ({ page }) => {
  await page.goto(`${origin}/contact`);
  await mark(page);
  edit('tenants/studio/pages/contact.md', 'title:', 'titel:');
  const overlay = page.getByRole('dialog', { name: 'Errors' });
  await expect(overlay).toBeVisible(patience);
  await expect(overlay).toContainText('unknown key `titel`');
  await expect(overlay).toContainText('contact.md:2:1');
  await expect(overlay.locator('.code').first()).toContainText('titel: Contact');
  await expect(overlay).toContainText('did you mean `title`?');
  expect(await isMarked(page), 'the last good page is behind it').toBe(true);
  edit('tenants/studio/pages/contact.md', 'titel:', 'title:');
  await expect(overlay).toBeHidden(patience);
});

test('an error in a theme or a manifest is shown, and can be closed', async ({ page }) => {
  await page.goto(`${origin}/bluedoor`);
  const overlay = page.getByRole('dialog', { name: 'Errors' });
  edit('themes/base/layouts/base.html', '{% block main %}', '{% block main %}{{ x|nowhere }}');
  await expect(overlay).toContainText('Unknown filter `nowhere`', patience);
  await expect(overlay).toContainText('themes/base/layouts/base.html:');
  await page.keyboard.press('Escape');
  await expect(overlay).toBeHidden();
  edit('themes/base/layouts/base.html', '{{ x|nowhere }}', '');
  edit('tenants/bluedoor/tenant.yaml', 'name:', 'nmae:');
  await expect(overlay).toContainText('unknown key `nmae`', patience);
  edit('tenants/bluedoor/tenant.yaml', 'nmae:', 'name:');
  await expect(overlay).toBeHidden(patience);
});

test('a draft is marked, and a tenant without a valid page gets one', async ({ page }) => {
  writeFileSync(path('tenants/bluedoor/pages/soon.md'), '---\ntitle: Soon\ndraft: true\n---\n');
  await expect.poll(async () => (await fetch(`${origin}/bluedoor/soon`)).status, patience).toBe(200);
  await page.goto(`${origin}/bluedoor/soon`);
  await expect(page).toHaveTitle(/^Draft: Soon/);
  await expect(page.getByText('Draft: only you see this page')).toBeVisible();

  cpSync(path('tenants/bluedoor'), path('tenants/.fresh'), { recursive: true });
  writeFileSync(path('tenants/.fresh/tenant.yaml'), 'nmae: Fresh\n');
  cpSync(path('tenants/.fresh'), path('tenants/fresh'), { recursive: true });
  await expect.poll(async () => (await fetch(`${origin}/fresh`)).status, patience).toBe(503);
  await page.goto(`${origin}/fresh`);
  await expect(page.getByRole('dialog', { name: 'Errors' })).toContainText('unknown key `nmae`');
  writeFileSync(path('tenants/fresh/tenant.yaml'), 'name: Fresh\n');
  await expect(page.locator('html')).toHaveAttribute('lang', 'en');
  await expect(page).not.toHaveTitle(/no page yet/, patience);
});
