/**
 * The one script that runs on a page with islands before a visitor turns to one, within the page itself. It defines `<row-island>`, which waits for its moment, fetches
 * its component and React, and mounts it. Runs in the browser; knows no React, and stays within 1 KB, since every page
 * carries it.
 *
 *   name    the island's name, for messages
 *   client  load | idle | visible | media | interaction: see when.ts
 *   media   the query of `client="media"`
 *   src     path of the island's module on this origin
 *   props   JSON
 *   prefix  what `useId` begins with; the one that the server rendered with
 *   render  `browser` on an island without server markup
 *
 * It tells its state in `data-state`: `loading`, `ready` or `failed`; before that it has none.
 *
 * The loader also does small things that need no component: see asked.ts, loaded.ts, missing.ts, once.ts, reveal.ts
 * and scrolled.ts.
 */
import type { FunctionComponent } from 'react';
import { markAsked } from './asked.ts';
import { interaction } from './interaction.ts';
import { markLoaded } from './loaded.ts';
import { reportMissing } from './missing.ts';
import { preload } from './modules.ts';
import { showOnce } from './once.ts';
import { reveal } from './reveal.ts';
import { markScrolled } from './scrolled.ts';
import type { Island, When } from './when.ts';

/** What a failing island was doing. */
export type Stage = 'loading' | 'hydrating' | 'rendering' | 'running';

/** The detail of the event `rowhouse:island-error`. */
export interface IslandError {
  island: string;
  stage: Stage;
  cause: unknown;
}

/** Tells the page and the console of a failure. Returns false where the page has called the event off. */
export type Fail = (element: HTMLElement, stage: Stage, cause: unknown) => boolean;

const fail: Fail = (element, stage, cause) => {
  const island = element.getAttribute('name') as string;
  element.dataset.state = 'failed';
  const detail: IslandError = { island, stage, cause };
  const proceed = element.dispatchEvent(
    new CustomEvent('rowhouse:island-error', { bubbles: true, cancelable: true, detail }),
  );
  if (proceed) console.error(`island \`${island}\` failed while ${stage}: ${cause}`);
  return proceed;
};

/** The policies that every page may need; when.ts has the others. */
const policies: Partial<Record<string, When>> = { load: (island) => island.start(), interaction };

class RowIsland extends HTMLElement implements Island {
  #life: Promise<void> | undefined;

  // A module runs once the document is parsed: the children are all there. An element that is moved is connected again:
  // that starts nothing anew.
  async connectedCallback() {
    try {
      const client = this.getAttribute('client') as string;
      const policy = policies[client] ?? (await this.#load<typeof import('./when.ts')>(WHEN)).when(client);
      policy(this);
    } catch (cause) {
      fail(this, 'loading', cause);
    }
  }

  start() {
    this.#life ??= this.#start();
    return this.#life;
  }

  /** A module that lies beside the island's own, `$&`. */
  #load<T>(file: string): Promise<T> {
    return import((this.getAttribute('src') as string).replace(/[^/]+$/, file));
  }

  async #start() {
    this.dataset.state = 'loading';
    try {
      preload();
      const [{ default: Component }, { mount }] = await Promise.all([
        this.#load<{ default: FunctionComponent<object> }>('$&'),
        this.#load<typeof import('./mount.tsx')>(RUNTIME),
      ]);
      await mount(this, Component, JSON.parse(this.getAttribute('props') as string), fail);
    } catch (cause) {
      fail(this, 'loading', cause);
    }
  }
}

markAsked();
markLoaded();
markScrolled();
showOnce();
reveal();
reportMissing();

// In a task of its own: this one also ends the parsing and computes the first styles, and keeps a phone busy for long enough.
setTimeout(() => customElements.define('row-island', RowIsland));
