/**
 * When an island comes to life: one small function per policy, all of one signature.
 *
 * Runs in the browser; knows no React. The loader has `load` and `interaction` (see interaction.ts); it fetches this
 * module for a page with another one.
 */

/** The element of an island. */
export interface Island extends HTMLElement {
  /** Brings it to life, once. The promise is kept when it lives, or has failed to. */
  start(): Promise<void>;
}

/** Starts the island when the moment has come. */
export type When = (island: Island) => void;

/** When the browser has nothing better to do, or after two seconds; soon, in browsers that cannot tell. */
const idle: When = (island) => {
  const ask: typeof requestIdleCallback | undefined = window.requestIdleCallback;
  if (ask) ask(() => island.start(), { timeout: 2000 });
  else setTimeout(() => island.start(), 200);
};

/**
 * When a part of it comes near the screen. The element itself is `display: contents` and has no box, so its
 * children are observed; without children there is nothing to see, and idle will do.
 */
const visible: When = (island) => {
  if (!island.firstElementChild) {
    idle(island);
    return;
  }
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      island.start();
    },
    { rootMargin: '200px' },
  );
  for (const child of island.children) observer.observe(child);
};

/** As soon as the media query in the `media` attribute holds. */
const media: When = (island) => {
  const query = matchMedia(island.getAttribute('media') ?? 'all');
  const check = () => {
    if (!query.matches) return;
    query.removeEventListener('change', check);
    island.start();
  };
  query.addEventListener('change', check);
  check();
};

const policies: Partial<Record<string, When>> = { idle, visible, media };

/** The policy that a `client` attribute names. */
export function when(client: string): When {
  const policy = policies[client];
  if (policy) return policy;
  throw new Error(`no policy \`${client}\``);
}
