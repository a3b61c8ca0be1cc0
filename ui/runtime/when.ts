/**
 * When an island comes to life: one small function per policy, all of one signature.
 *
 * Runs in the browser, within the loader; knows no React.
 */

/** Calls `start` at most once, when the moment has come; the function it returns calls the waiting off. */
export type When = (island: HTMLElement, start: () => void) => () => void;

/** At once. */
const load: When = (_island, start) => {
  start();
  return () => {};
};

/** When the browser has nothing better to do, or after two seconds; soon, in browsers that cannot tell. */
const idle: When = (_island, start) => {
  let waiting = true;
  const begin = () => {
    if (waiting) start();
  };
  const ask: typeof requestIdleCallback | undefined = window.requestIdleCallback;
  if (ask) ask(begin, { timeout: 2000 });
  else setTimeout(begin, 200);
  return () => {
    waiting = false;
  };
};

/**
 * When a part of it comes near the screen. The element itself is `display: contents` and has no box, so its
 * children are observed; without children there is nothing to see, and idle will do.
 */
const visible: When = (island, start) => {
  if (!island.firstElementChild) return idle(island, start);
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      start();
    },
    { rootMargin: '200px' },
  );
  for (const child of island.children) observer.observe(child);
  return () => observer.disconnect();
};

/** As soon as the media query in the `media` attribute holds. */
const media: When = (island, start) => {
  const query = matchMedia(island.getAttribute('media') ?? 'all');
  const check = () => {
    if (!query.matches) return;
    stop();
    start();
  };
  const stop = () => query.removeEventListener('change', check);
  query.addEventListener('change', check);
  check();
  return stop;
};

const policies: Partial<Record<string, When>> = { load, idle, visible, media };

/** The policy that a `client` attribute names. */
export function when(client: string | null): When {
  const policy = policies[`${client}`];
  if (policy) return policy;
  throw new Error(`no policy \`${client}\``);
}
