/**
 * The modules that a page's islands need once a visitor turns to one. Its head names them, with a `media` that holds
 * nowhere, so that nothing of them competes with what the page shows first.
 *
 * Runs in the browser, within the loader.
 */
const links = () => document.querySelectorAll<HTMLLinkElement>('link[media="not all"]');

/**
 * Fetches them while nothing else is to be done, and does not compile them: most pages are only read. Asking for one
 * takes a browser a millisecond or two, so each is asked for in a task of its own: a tap does not wait for them all.
 */
export function fetchAhead(): void {
  for (const link of links()) {
    setTimeout(() => {
      if (link.media) link.rel = 'prefetch';
    });
  }
}

/** Compiles them, all at a time, which `import` alone would do one after the other. */
export function preload(): void {
  for (const link of links()) {
    link.rel = 'modulepreload';
    link.media = '';
  }
}
