/**
 * Marks a page that has left its top, by `data-scrolled` on its root: a theme's header may look different there.
 *
 * Runs in the browser, within the loader.
 */

/** Pixels that still count as the top. */
const THRESHOLD = 20;

export function markScrolled(): void {
  const mark = () => document.documentElement.toggleAttribute('data-scrolled', scrollY > THRESHOLD);
  addEventListener('scroll', mark);
  // With the first frame, since asking now would lay the page out twice.
  requestAnimationFrame(mark);
}
