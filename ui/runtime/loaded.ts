/**
 * Marks a page that has loaded, by `data-loaded` on its root: a theme's opening may wait for that.
 *
 * Runs in the browser, within the loader, and so before the event.
 */
export function markLoaded(): void {
  // In the frame after it: an animation counts from the beginning of its frame, which may lie before the event.
  addEventListener('load', () =>
    requestAnimationFrame(() => document.documentElement.toggleAttribute('data-loaded', true)),
  );
}
