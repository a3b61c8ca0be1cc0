/** Metadata in a page's head. */
import { expect, type Page } from '@playwright/test';

/** Returns the company's name, from the organization in the page's structured data. */
export async function companyName(page: Page): Promise<string> {
  const blocks = await page.locator('script[type="application/ld+json"]').allTextContents();
  const names = blocks.flatMap((block) => organizationNames(JSON.parse(block)));
  const name = names[0] ?? (await page.locator('meta[property="og:site_name"]').getAttribute('content'));
  expect(name, 'the company name in JSON-LD or og:site_name').toBeTruthy();
  return name ?? '';
}

/** Returns the only canonical address. */
export async function canonical(page: Page): Promise<string | null> {
  const link = page.locator('head link[rel="canonical"]');
  await expect(link).toHaveCount(1);
  return link.getAttribute('href');
}

function organizationNames(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(organizationNames);
  if (typeof node !== 'object' || node === null) return [];
  const here =
    '@type' in node && node['@type'] === 'Organization' && 'name' in node && typeof node.name === 'string'
      ? [node.name]
      : [];
  return [...here, ...Object.values(node).flatMap(organizationNames)];
}
