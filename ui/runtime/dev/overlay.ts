/**
 * Shows errors in a dialog over the page. Runs in the browser, with `--dev` only.
 *
 * The dialog is in a shadow root, so the theme's styles and its own do not affect each other. Texts are inserted as
 * text: the page's policy forbids HTML from strings, and an error may contain anything that a file can.
 */
import { type Diagnostic, marked, placeOf } from './state.ts';
import css from './style.css';

export class Overlay {
  readonly #root: ShadowRoot;
  readonly #dialog = document.createElement('dialog');
  readonly #list = element('ol', 'list');
  readonly #title = element('h1', 'title');
  #errors: Diagnostic[] = [];
  #faults: Diagnostic[] = [];
  /** The errors that are shown, or that were shown and closed, so that they are shown once. */
  #known = '';

  constructor() {
    const host = document.createElement('rowhouse-dev');
    this.#root = host.attachShadow({ mode: 'open' });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    this.#root.adoptedStyleSheets = [sheet];
    const close = element('button', 'close', 'Close');
    close.addEventListener('click', () => this.#dialog.close());
    this.#dialog.setAttribute('aria-label', 'Errors');
    const about = element(
      'p',
      'about',
      'The last valid page is behind this dialog. The dialog closes when the errors are fixed.',
    );
    this.#dialog.append(close, this.#title, this.#list, about);
    this.#root.append(this.#dialog);
    document.documentElement.append(host);
  }

  /** Shows the current errors, and removes those that are fixed. */
  show(errors: Diagnostic[]) {
    this.#errors = errors;
    this.#draw();
  }

  /** Adds an error that occurred in the browser. It stays until the page is reloaded. */
  fault(fault: Diagnostic) {
    this.#faults.push(fault);
    this.#draw();
  }

  /** Shows a note about the page in its corner. */
  mark(words: string) {
    const mark = element('p', 'mark', words);
    mark.setAttribute('role', 'note');
    this.#root.append(mark);
  }

  #draw() {
    const all = [...this.#errors, ...this.#faults];
    const known = JSON.stringify(all);
    if (known === this.#known) return;
    this.#known = known;
    this.#title.textContent = all.length === 1 ? '1 error' : `${all.length} errors`;
    this.#list.replaceChildren(...all.map(item));
    if (all.length === 0) this.#dialog.close();
    else if (!this.#dialog.open) this.#dialog.showModal();
  }
}

function item(error: Diagnostic): HTMLElement {
  const parts = [element('p', 'message', error.message), element('p', 'place', placeOf(error))];
  const line = marked(error);
  if (line) {
    const code = element('pre', 'code');
    const [before, meant, after] = line;
    code.append(element('span', 'number', `${error.line} `), before, element('mark', 'meant', meant), after);
    parts.push(code);
  } else if (error.text) {
    parts.push(element('pre', 'code', error.text));
  }
  if (error.hint) parts.push(element('p', 'hint', error.hint));
  const entry = element('li', 'error');
  entry.append(...parts);
  return entry;
}

function element(name: string, part: string, text = ''): HTMLElement {
  const made = document.createElement(name);
  made.className = part;
  made.textContent = text;
  return made;
}
