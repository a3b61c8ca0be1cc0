/** Functions for pages that follow changes on the server. */

/** Returns a function that runs `work`, one run at a time. Calls during a run lead to one more run. */
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
 * Calls `begin` now and whenever the page becomes visible, and `end` when it is hidden. A browser opens six
 * connections to a host, so a hidden page must release its own.
 */
export function whileVisible(begin: () => void, end: () => void): void {
  document.addEventListener('visibilitychange', () => (document.hidden ? end() : begin()));
  addEventListener('pagehide', end);
  addEventListener('pageshow', begin);
  begin();
}
