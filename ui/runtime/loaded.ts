/**
 * Marks a page that has loaded, by `data-loaded` on its root: a theme's opening may wait for that. Later is the time to
 * fetch ahead.
 *
 * Runs in the browser, within the loader, and so before the event.
 */
import { fetchAhead } from './modules.ts';

export function markLoaded(): void {
  addEventListener('load', () => {
    // What the page shows first may come after the event, and is not to share its line.
    setTimeout(fetchAhead, 1000);
    // An animation counts from the beginning of its frame. On a busy machine the first frame after the event began
    // before it, and the second one was asked for by then; the third is the first that certainly begins later.
    requestAnimationFrame(() =>
      requestAnimationFrame(() =>
        requestAnimationFrame(() => document.documentElement.toggleAttribute('data-loaded', true)),
      ),
    );
  });
}
