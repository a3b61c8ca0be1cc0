/**
 * The script of the console that the admin listener serves. The pages are complete without it; it keeps an open one as
 * things are, filters while one types, sends commands without leaving the page, and copies.
 *
 * The server says only that something changed. What that is, the page finds out by asking for itself again.
 */
import { whileSeen } from '../following.ts';
import { listenForCommands } from './command.ts';
import { listenForCopies } from './copy.ts';
import { listenForFilter } from './filter.ts';
import { Freshness } from './freshness.ts';
import { refresh } from './refresh.ts';

/** A browser asks again by itself where it can; where the server refused, or is away for long, it does not. */
const AGAIN = 2_000;

const freshness = new Freshness();
let source: EventSource | undefined;

function listen() {
  if (source || document.hidden) return;
  source = new EventSource('/events');
  source.onopen = () => freshness.found();
  source.onmessage = ({ data }: MessageEvent<string>) => {
    freshness.found();
    if (data !== document.body.dataset.version) void refresh();
  };
  source.onerror = () => {
    freshness.lost();
    if (source?.readyState !== EventSource.CLOSED) return;
    stop();
    setTimeout(listen, AGAIN);
  };
}

function stop() {
  source?.close();
  source = undefined;
}

listenForCommands();
listenForCopies();
listenForFilter();
whileSeen(listen, stop);
