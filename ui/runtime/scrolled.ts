/**
 * Marks a page that is scrolled away from its top, by `data-scrolled` on its root; a theme's header may then look
 * different.
 *
 * Runs in the browser, as part of the loader.
 */

/** Pixels that still count as the top. */
const THRESHOLD = 20;

export function markScrolled(): void {
  const mark = () => document.documentElement.toggleAttribute('data-scrolled', scrollY > THRESHOLD);
  addEventListener('scroll', mark);
  // In the first frame, since reading the position now would force another layout.
  requestAnimationFrame(mark);
}
