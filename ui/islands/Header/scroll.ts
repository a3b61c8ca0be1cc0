/** Whether the page has left its top, as an external store for React. */

/** Pixels that still count as the top. */
const THRESHOLD = 20;

export function isScrolled(): boolean {
  return window.scrollY > THRESHOLD;
}

export function onScroll(listener: () => void): () => void {
  window.addEventListener('scroll', listener, { passive: true });
  return () => window.removeEventListener('scroll', listener);
}
