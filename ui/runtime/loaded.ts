/**
 * Marks a page that has loaded, by `data-loaded` on its root: a theme's opening may wait for that.
 *
 * Runs in the browser, within the loader, and so before the event.
 */
export function markLoaded(): void {
  // In the second frame after it: an animation counts from the beginning of its frame, and the first one may have begun
  // before the event.
  addEventListener('load', () =>
    requestAnimationFrame(() =>
      requestAnimationFrame(() => document.documentElement.toggleAttribute('data-loaded', true)),
    ),
  );
}
