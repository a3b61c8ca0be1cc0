/** Shows whether the page is up to date, so that old data never look current. */
import { announce } from './announce.ts';

/** Milliseconds without a stream before the loss is shown. A stream ends at intervals and is opened again. */
const LOST_DELAY = 3_000;

const LIVE = 'Live, as of';
const LOST = 'Connection lost, as of';

export class Freshness {
  private readonly place = document.getElementById('freshness');
  private timer: ReturnType<typeof setTimeout> | undefined;

  markLive(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.show('live', LIVE);
  }

  markLost(): void {
    this.timer ??= setTimeout(() => {
      this.show('lost', LOST);
      announce(LOST);
    }, LOST_DELAY);
  }

  private show(state: string, words: string): void {
    const text = this.place?.querySelector('.words');
    if (!this.place || !text || this.place.dataset.state === state) return;
    this.place.dataset.state = state;
    text.textContent = words;
  }
}
