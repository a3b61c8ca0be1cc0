/** What pages have in common that follow what the server has. */

/** `work`, to be called at any time: it is done once at a time, and once more where it was called meanwhile. */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let working = false;
  let again = false;
  return async () => {
    if (working) {
      again = true;
      return;
    }
    working = true;
    try {
      do {
        again = false;
        await work();
      } while (again);
    } finally {
      working = false;
    }
  };
}

/**
 * Calls `begin` now and whenever the page is seen again, and `end` when it no longer is: a browser opens six
 * connections to a host, and a page that nobody sees gives its own back.
 */
export function whileSeen(begin: () => void, end: () => void): void {
  document.addEventListener('visibilitychange', () => (document.hidden ? end() : begin()));
  addEventListener('pagehide', end);
  addEventListener('pageshow', begin);
  begin();
}
