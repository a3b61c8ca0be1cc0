/**
 * The script of `rowhouse serve --dev`: keeps an open page up to date with its files. Visitors never get it.
 *
 * An event of the server says only that something changed, and lists the errors. The page then fetches itself
 * again. If its `data-page` has changed, it is reloaded. Otherwise only its style can differ, and the style is
 * swapped, so that the scroll position and form entries stay.
 */
import { oneAtATime, whileVisible } from '../following.ts';
import type { IslandError } from '../loader.ts';
import { watchFrames } from './gallery.ts';
import { Overlay } from './overlay.ts';
import { factsOf, type PageState, swapStyle } from './page.ts';
import { type DeploymentDiagnostics, errorsFor, hiddenReason } from './state.ts';

const EVENTS = '/.rowhouse/events';
/** Milliseconds until a failed request is repeated. */
const RETRY_DELAY = 1000;

const tag = document.querySelector<HTMLScriptElement>('script[data-page]');
const tenant = tag?.dataset.tenant ?? '';
const shown = tag?.dataset.page;
const overlay = new Overlay();
const reason = hiddenReason(tag?.dataset ?? {});
if (reason) overlay.mark(`${reason}: only you see this page`);

/** Fetches the current state of the page; `undefined` if the server does not respond. */
async function fetchFacts(): Promise<PageState | undefined> {
  const response = await fetch(location.href, { cache: 'no-cache' });
  return factsOf(await response.text());
}

let source: EventSource | undefined;

/** Updates the page to the server's state, one update at a time. Events during an update lead to one more. */
const refresh = oneAtATime(async () => {
  const facts = await fetchFacts().catch(() => undefined);
  if (!facts) {
    // No change may be missed. If the server is away, it sends a new event when it is back.
    if (source?.readyState === EventSource.OPEN) setTimeout(refresh, RETRY_DELAY);
  } else if (facts.page === shown) swapStyle(facts);
  else location.reload();
});

function listen() {
  if (source || document.hidden) return;
  source = new EventSource(EVENTS);
  source.onmessage = (message: MessageEvent<string>) => {
    overlay.show(errorsFor(tenant, JSON.parse(message.data) as DeploymentDiagnostics));
    void refresh();
  };
}

function stop() {
  source?.close();
  source = undefined;
}

addEventListener('rowhouse:island-error', (event) => {
  const { island, stage, cause } = (event as CustomEvent<IslandError>).detail;
  overlay.fault({
    file: `island ${island}`,
    message: `the island failed while ${stage}`,
    text: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
  });
});
watchFrames(document);
whileVisible(listen, stop);
