/**
 * Fetches the modules of a page's islands. The head lists them with a `media` that never matches, so that they do
 * not compete with the first content of the page.
 *
 * Runs in the browser, as part of the loader.
 */
const links = () => document.querySelectorAll<HTMLLinkElement>('link[media="not all"]');

/**
 * Prefetches the modules while the browser is idle, without compiling them, since most pages are only read. Each
 * request takes a browser a millisecond or two, so each is made in a task of its own. A tap then does not wait for
 * all of them.
 */
export function fetchAhead(): void {
  for (const link of links()) {
    setTimeout(() => {
      if (link.media) link.rel = 'prefetch';
    });
  }
}

/** Fetches and compiles all modules in parallel; `import` alone would load them one after the other. */
export function preload(): void {
  for (const link of links()) {
    link.rel = 'modulepreload';
    link.media = '';
  }
}
