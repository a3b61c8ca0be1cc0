/**
 * Tells the console of a page that is not there. The layout of such a page, and no other, has an element with
 * `data-missing`.
 *
 * Runs in the browser, within the loader.
 */
export function reportMissing(): void {
  if (document.querySelector('[data-missing]')) {
    console.error(`404: there is no page at \`${location.pathname}\``);
  }
}
