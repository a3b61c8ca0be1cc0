/**
 * The loader: the only script that runs on a page with islands before a visitor uses one. Each page contains it
 * inline.
 *
 * It defines `<row-island>`, which waits for its policy, fetches its component and React, and mounts the component.
 * It runs in the browser, knows no React and stays within 1 KB, since every page contains it.
 *
 *   name    the island's name, for messages
 *   client  load | idle | visible | media | interaction: see when.ts
 *   media   the query of `client="media"`
 *   src     path of the island's module on this origin
 *   props   JSON
 *   prefix  the prefix of `useId`, the same as on the server
 *   render  `browser` on an island without server markup
 *
 * The element's `data-state` is `loading`, `ready` or `failed`; before the start it is absent.
 *
 * The loader also has small functions without a component: see asked.ts, loaded.ts, missing.ts, once.ts, reveal.ts
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

/** The stage in which an island failed. */
export type Stage = 'loading' | 'hydrating' | 'rendering' | 'running';

/** The detail of the event `rowhouse:island-error`. */
export interface IslandError {
  island: string;
  stage: Stage;
  cause: unknown;
}

/** Reports a failure to the page and the browser's console. Returns false if the page has cancelled the event. */
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

  // A module runs once the document is parsed, so all children exist. Moving an element connects it again, but does
  // not start it again.
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

  /** Imports a module from the folder of the island's own module, whose name is `$&`. */
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

// In a task of its own: the current task also ends the parsing and computes the first styles, which keeps a phone
// busy long enough.
setTimeout(() => customElements.define('row-island', RowIsland));
