/**
 * The policies of when an island starts: one small function each, all of one signature.
 *
 * Runs in the browser; knows no React. The loader has `load` and `interaction` (see interaction.ts), and fetches
 * this module for a page with another policy.
 */

/** The element of an island. */
export interface Island extends HTMLElement {
  /** Fetches and mounts the island, once. The promise resolves when the island is mounted or has failed. */
  start(): Promise<void>;
}

/** Starts the island when the policy's condition is met. */
export type When = (island: Island) => void;

/** Starts when the browser is idle, or after two seconds. Browsers without idle callbacks start after 200 ms. */
const idle: When = (island) => {
  const ask: typeof requestIdleCallback | undefined = window.requestIdleCallback;
  if (ask) ask(() => island.start(), { timeout: 2000 });
  else setTimeout(() => island.start(), 200);
};

/**
 * Starts when a part of the island comes near the viewport. The element itself is `display: contents` and has no
 * box, so its children are observed. Without children it starts like `idle`.
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

/** Starts as soon as the media query in the `media` attribute matches. */
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

/** Returns the policy that a `client` attribute names. */
export function when(client: string): When {
  const policy = policies[client];
  if (policy) return policy;
  throw new Error(`no policy \`${client}\``);
}
