/**
 * The script of `rowhouse serve --dev`: it keeps an open page as its files are. No visitor ever gets it.
 *
 * The server only says that something changed, and what is wrong now. What that means for this page is found out by
 * asking for it again: with another `data-page` it is loaded anew; with the same one only its style can differ, and
 * that is swapped, so that scroll place and form entries stay.
 */
import { oneAtATime, whileSeen } from '../following.ts';
import type { IslandError } from '../loader.ts';
import { Overlay } from './overlay.ts';
import { type Facts, factsOf, swapStyle } from './page.ts';
import { errorsFor, type State } from './state.ts';

const EVENTS = '/.rowhouse/events';
/** How long until a question is asked again that was not answered, in milliseconds. */
const AGAIN = 1000;

const tag = document.querySelector<HTMLScriptElement>('script[data-page]');
const tenant = tag?.dataset.tenant ?? '';
const shown = tag?.dataset.page;
const overlay = new Overlay();
if (tag?.dataset.draft !== undefined) overlay.mark('Draft: only you see this page');

/** How this page is now; `undefined` where the server does not say. */
async function ask(): Promise<Facts | undefined> {
  const answer = await fetch(location.href, { cache: 'no-cache' });
  return factsOf(await answer.text());
}

let source: EventSource | undefined;

/** Makes the page what the server has. One question at a time; what comes meanwhile is asked after it. */
const refresh = oneAtATime(async () => {
  const facts = await ask().catch(() => undefined);
  if (!facts) {
    // No change may be missed. Where the server is away, the events begin anew when it is back.
    if (source?.readyState === EventSource.OPEN) setTimeout(refresh, AGAIN);
  } else if (facts.page === shown) swapStyle(facts);
  else location.reload();
});

function listen() {
  if (source || document.hidden) return;
  source = new EventSource(EVENTS);
  source.onmessage = (message: MessageEvent<string>) => {
    overlay.show(errorsFor(tenant, JSON.parse(message.data) as State));
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
    message: `it failed while ${stage}`,
    text: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
  });
});
whileSeen(listen, stop);
