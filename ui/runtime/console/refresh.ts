/**
 * Makes the page what the server has: what is marked as live is replaced where it differs. What somebody does there
 * stays: an opened explanation, the focus, a selection.
 *
 * The answer is parsed by the browser itself (`responseType`), so that no script here turns text into HTML.
 */
import { oneAtATime } from '../following.ts';
import { say } from './say.ts';

/** One question at a time; what changes meanwhile is asked after it. */
export const refresh = oneAtATime(async () => {
  const page = await ask();
  if (page) take(page);
});

/** The page as it is now; nothing where the server does not say. */
function ask(): Promise<Document | undefined> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open('GET', location.href);
    request.responseType = 'document';
    request.onload = () => resolve(request.status === 200 ? (request.responseXML ?? undefined) : undefined);
    request.onerror = () => resolve(undefined);
    request.send();
  });
}

function take(page: Document): void {
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
  if (now !== before) say(now);
}

/** What the page says in its first line, as it is read out. */
function heading(page: Document): string {
  return page.querySelector('h1')?.textContent?.replace(/\s+/g, ' ').trim() ?? '';
}

/** Whether somebody is marking something there, to copy it. */
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

/** What tells an element from its neighbours, before and after. */
function keyOf(element: Element): string {
  const target = element.getAttribute('href') ?? element.getAttribute('formaction') ?? '';
  const around = element.closest('[data-severity]')?.textContent ?? element.textContent;
  return `${element.tagName} ${target} ${target ? '' : around}`;
}
