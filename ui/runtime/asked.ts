/**
 * Marks a page that was asked for with `?tag=`, by `data-asked` on its root, before any island is there. A theme may
 * then hold back the list that the `EntryFilter` is about to shorten, so that nobody sees the wrong one first.
 *
 * Runs in the browser, within the loader.
 */
export function markAsked(): void {
  document.documentElement.toggleAttribute('data-asked', isAsked());
}

/** Whether the address names a topic. */
export const isAsked = () => location.search.includes('tag=');
