/**
 * Marks a page that was requested with `?tag=`, by `data-asked` on its root, before any island is mounted. A theme
 * may then hide the list that the `EntryFilter` is about to shorten, so that visitors do not see the complete list
 * first.
 *
 * Runs in the browser, as part of the loader.
 */
export function markAsked(): void {
  document.documentElement.toggleAttribute('data-asked', isAsked());
}

/** Returns whether the address names a topic. */
export const isAsked = () => location.search.includes('tag=');
