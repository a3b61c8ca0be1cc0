/** Copies a text when its button is pressed. */
import { announce } from './announce.ts';

const COPIED = 'Copied.';

export function listenForCopies(): void {
  document.addEventListener('click', (event) => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-copy]') : null;
    const text = button && document.getElementById(button.dataset.copy ?? '')?.textContent;
    if (text) void copy(text);
  });
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(`${text}\n`);
    announce(COPIED);
  } catch {
    // The browser refuses access to the clipboard; the text can be selected by hand.
  }
}
