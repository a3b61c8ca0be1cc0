/**
 * The one script that a page with islands names. It defines `<row-island>`, which waits for its moment, fetches
 * its component and React, and mounts it. Runs in the browser; knows no React, and stays within 1 KB.
 *
 *   name    the island's name, for messages
 *   client  load | idle | visible | media: see when.ts
 *   media   the query of `client="media"`
 *   src     path of the island's module on this origin
 *   props   JSON
 *   prefix  what `useId` begins with; the one that the server rendered with
 *   render  `browser` on an island without server markup
 *
 * It tells its state in `data-state`: `loading`, `ready` or `failed`; before that it has none.
 *
 * The loader also does four small things that need no component: see asked.ts, loaded.ts, missing.ts and reveal.ts.
 */
import type { FunctionComponent } from 'react';
import { markAsked } from './asked.ts';
import { markLoaded } from './loaded.ts';
import { reportMissing } from './missing.ts';
import { reveal } from './reveal.ts';
import { when } from './when.ts';

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
  const island = element.getAttribute('name') ?? '';
  element.dataset.state = 'failed';
  const detail: IslandError = { island, stage, cause };
  const proceed = element.dispatchEvent(
    new CustomEvent('rowhouse:island-error', { bubbles: true, cancelable: true, detail }),
  );
  if (proceed) console.error(`island \`${island}\` failed while ${stage}: ${cause}`);
  return proceed;
};

class RowIsland extends HTMLElement {
  /** Ends what is under way: the waiting, the loading, the mounted component. */
  #undo: (() => void)[] = [];

  connectedCallback() {
    if (this.#undo[0]) return;
    // A module runs once the document is parsed: the children are all there.
    try {
      this.#undo.push(when(this.getAttribute('client'))(this, () => this.#start()));
    } catch (cause) {
      fail(this, 'loading', cause);
    }
  }

  disconnectedCallback() {
    // An element that is moved is connected again by the time this runs, and keeps what it has.
    queueMicrotask(() => {
      if (this.isConnected) return;
      for (const undo of this.#undo.splice(0)) undo();
      delete this.dataset.state;
    });
  }

  async #start() {
    let wanted = true;
    this.#undo.push(() => {
      wanted = false;
    });
    this.dataset.state = 'loading';
    try {
      const src = `${this.getAttribute('src')}`;
      if (!/^(\/[\w.-]+)+\.js$/.test(src)) throw new Error(`src \`${src}\` is no script`);
      const [{ default: Component }, { mount }] = await Promise.all([
        import(src) as Promise<{ default: FunctionComponent<object> }>,
        import(RUNTIME) as Promise<typeof import('./mount.tsx')>,
      ]);
      if (wanted)
        this.#undo.push(mount(this, Component, JSON.parse(this.getAttribute('props') ?? '{}'), fail));
    } catch (cause) {
      if (wanted) fail(this, 'loading', cause);
    }
  }
}

customElements.define('row-island', RowIsland);

markAsked();
markLoaded();
reveal();
reportMissing();
