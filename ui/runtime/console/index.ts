/**
 * The script of the console, which the admin listener serves. The pages are complete without it. It keeps an open
 * page up to date, filters while the operator types, sends commands without leaving the page, and copies.
 *
 * An event of the server says only that something changed. The page then fetches itself again.
 */
import { whileVisible } from '../following.ts';
import { listenForCommands } from './command.ts';
import { listenForCopies } from './copy.ts';
import { listenForFilter } from './filter.ts';
import { Freshness } from './freshness.ts';
import { refresh } from './refresh.ts';

/**
 * Milliseconds until a closed stream is opened again. A browser reconnects by itself, except after a refusal or a
 * long outage.
 */
const RETRY_DELAY = 2_000;

const freshness = new Freshness();
let source: EventSource | undefined;

function listen() {
  if (source || document.hidden) return;
  source = new EventSource('/events');
  source.onopen = () => freshness.markLive();
  source.onmessage = ({ data }: MessageEvent<string>) => {
    freshness.markLive();
    if (data !== document.body.dataset.version) void refresh();
  };
  source.onerror = () => {
    freshness.markLost();
    if (source?.readyState !== EventSource.CLOSED) return;
    stop();
    setTimeout(listen, RETRY_DELAY);
  };
}

function stop() {
  source?.close();
  source = undefined;
}

listenForCommands();
listenForCopies();
listenForFilter();
whileVisible(listen, stop);
