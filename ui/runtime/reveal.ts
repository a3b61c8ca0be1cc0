/**
 * Tells elements with `data-reveal` whether they have come into view: `data-seen` becomes `false` for those that are
 * still to come and, once a tenth of one is in view, `true` for good. What that looks like is the theme's affair.
 *
 * Runs in the browser, within the loader. It marks only what is out of view, so that nothing which a visitor sees
 * already vanishes again, and nothing at all where it does not run.
 */

/** The part of an element that has to be in view. */
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
