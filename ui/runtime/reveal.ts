/**
 * Marks elements with `data-reveal`: `data-seen` is `false` while an element has not been in view, and `true` once
 * a tenth of it has been. The theme decides how the states look.
 *
 * Runs in the browser, as part of the loader. Only elements out of view are set to `false`, so that nothing visible
 * disappears. Without scripts nothing is marked.
 */

/** The part of an element that must be in view. */
const THRESHOLD = 0.1;

export function reveal(): void {
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        target.setAttribute('data-seen', `${isIntersecting}`);
        if (isIntersecting) observer.unobserve(target);
      }
    },
    { threshold: THRESHOLD },
  );
  for (const element of document.querySelectorAll('[data-reveal]')) observer.observe(element);
}
