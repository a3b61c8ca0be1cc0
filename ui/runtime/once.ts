/**
 * Shows what a visitor is to see once: elements with `data-once` and `hidden`, while the device keeps nothing under the
 * key that the attribute names. Who keeps it there is the island's affair.
 *
 * Runs in the browser, within the loader.
 */
export function showOnce(): void {
  for (const element of document.querySelectorAll<HTMLElement>('[data-once]')) {
    element.hidden = false;
    try {
      element.hidden = (element.dataset.once as string) in localStorage;
    } catch {
      // Storage is blocked: nothing is kept.
    }
  }
}
