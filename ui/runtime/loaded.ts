/**
 * Marks a page that has loaded, by `data-loaded` on its root; a theme's opening animation may wait for the mark.
 * Prefetches the islands' modules one second later.
 *
 * Runs in the browser, as part of the loader, and therefore before the load event.
 */
import { fetchAhead } from './modules.ts';

export function markLoaded(): void {
  addEventListener('load', () => {
    // The first content may be painted after the event, and must not compete for bandwidth.
    setTimeout(fetchAhead, 1000);
    // An animation counts from the beginning of its frame. On a busy machine the first frame after the event began
    // before it, and the second one was requested before it. The third frame certainly begins after the event.
    requestAnimationFrame(() =>
      requestAnimationFrame(() =>
        requestAnimationFrame(() => document.documentElement.toggleAttribute('data-loaded', true)),
      ),
    );
  });
}
