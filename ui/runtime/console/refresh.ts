/**
 * Updates the page to the server's state: elements marked as live are replaced if they differ. The operator's state
 * is preserved: opened details, the focus, a selection.
 *
 * The browser itself parses the response (`responseType`), so that no script here turns text into HTML.
 */
import { oneAtATime } from '../following.ts';
import { announce } from './announce.ts';

/** Runs one update at a time; changes during an update lead to one more. */
export const refresh = oneAtATime(async () => {
  const page = await fetchPage();
  if (page) update(page);
});

/** Fetches the current page; undefined if the server does not respond. */
function fetchPage(): Promise<Document | undefined> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('GET', location.href);
    request.responseType = 'document';
    request.onload = () => resolve(request.status === 200 ? (request.responseXML ?? undefined) : undefined);
    request.onerror = () => resolve(undefined);
    request.send();
  });
}

function update(page: Document): void {
  const before = heading(document);
  document.title = page.title;
  const version = page.body.dataset.version;
  if (version) document.body.dataset.version = version;
  for (const fresh of page.querySelectorAll<HTMLElement>('[data-live]')) {
    const old = document.getElementById(fresh.id);
    if (!old || old.outerHTML === fresh.outerHTML || isSelected(old)) continue;
    replace(old, document.adoptNode(fresh));
  }
  const now = heading(document);
  if (now !== before) announce(now);
}

/** Returns the main heading of the page, as it is read out. */
function heading(page: Document): string {
  return page.querySelector('h1')?.textContent?.replace(/\s+/g, ' ').trim() ?? '';
}

/** Returns whether the operator has selected text in the region, to copy it. */
function isSelected(region: Element): boolean {
  const selection = getSelection();
  return Boolean(selection && !selection.isCollapsed && selection.containsNode(region, true));
}

function replace(old: HTMLElement, fresh: HTMLElement): void {
  const open = new Set([...old.querySelectorAll('details[open]')].map(keyOf));
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const scrolled = new Map([...old.querySelectorAll('pre')].map((pre) => [keyOf(pre), pre.scrollLeft]));
  old.replaceWith(fresh);
  for (const details of fresh.querySelectorAll('details')) if (open.has(keyOf(details))) details.open = true;
  for (const pre of fresh.querySelectorAll('pre')) pre.scrollLeft = scrolled.get(keyOf(pre)) ?? 0;
  if (!focused) return;
  const key = keyOf(focused);
  const same = [...fresh.querySelectorAll<HTMLElement>(focused.tagName)].find((one) => keyOf(one) === key);
  same?.focus({ preventScroll: true });
}

/** Returns a key that identifies an element before and after an update. */
function keyOf(element: Element): string {
  const target = element.getAttribute('href') ?? element.getAttribute('formaction') ?? '';
  const around = element.closest('[data-severity]')?.textContent ?? element.textContent;
  return `${element.tagName} ${target} ${target ? '' : around}`;
}
