/** Says whether the page is kept as things are: what is old and looks new is worse than nothing. */
import { say } from './say.ts';

/** A stream ends now and then and begins anew; only what lasts is worth a word. */
const PATIENCE = 3_000;

const LIVE = 'Live, as of';
const LOST = 'Connection lost, as of';

export class Freshness {
  private readonly place = document.getElementById('freshness');
  private timer: ReturnType<typeof setTimeout> | undefined;

  found(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.show('live', LIVE);
  }

  lost(): void {
    this.timer ??= setTimeout(() => {
      this.show('lost', LOST);
      say(LOST);
    }, PATIENCE);
  }

  private show(state: string, words: string): void {
    const text = this.place?.querySelector('.words');
    if (!this.place || !text || this.place.dataset.state === state) return;
    this.place.dataset.state = state;
    text.textContent = words;
  }
}
