/** The topic in the page's address, as an external store for React. */

const listeners = new Set<() => void>();

/** Returns the value of `?tag=`, or null. */
export function chosenTag(): string | null {
  return new URLSearchParams(location.search).get('tag') || null;
}

/** Changes the address within the page, without loading it. */
export function go(href: string): void {
  if (new URL(href, location.href).href === location.href) return;
  history.pushState(null, '', href);
  for (const listener of listeners) listener();
}

/** Calls `listener` when the address may have changed, here or by the browser's buttons. */
export function onPlace(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener('popstate', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('popstate', listener);
  };
}
