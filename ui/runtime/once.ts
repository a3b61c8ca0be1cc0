/**
 * Shows notices that a visitor sees once: elements with `data-once` and `hidden`, until the device stores a value
 * under the key in the attribute. The island stores the value.
 *
 * Runs in the browser, as part of the loader.
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
