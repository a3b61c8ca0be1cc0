/** A button copies what it names. */
import { say } from './say.ts';

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
    say(COPIED);
  } catch {
    // The browser does not let it; the text can be marked by hand.
  }
}
