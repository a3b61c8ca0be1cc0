/**
 * Logs a missing page to the browser's console. Only the layout of a 404 page has an element with `data-missing`.
 *
 * Runs in the browser, as part of the loader.
 */
export function reportMissing(): void {
  if (document.querySelector('[data-missing]')) {
    console.error(`404: there is no page at \`${location.pathname}\``);
  }
}
