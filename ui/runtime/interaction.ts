/**
 * The policy `client="interaction"`: an island comes to life when a visitor turns to it, by pointer, focus or click, or
 * to an element anywhere whose `data-island` has its name.
 *
 * A button that is pressed before the island lives is pressed again when it does, so that no click is lost. Who asked
 * for one topic on the page before (see asked.ts) has turned to this one already.
 *
 * Runs in the browser, within the loader.
 */
import { isAsked } from './asked.ts';
import type { When } from './when.ts';

export const interaction: When = (island) => {
  let pressed: HTMLElement | null | undefined;
  let living = false;
  const turn = async (event: Event & Partial<MouseEvent>) => {
    // A browser says `pointermove` also of a pointer that rests, when a page is shown or scrolled under it.
    if (living || (event.type === 'pointermove' && !event.movementX && !event.movementY)) return;
    const button = event.type === 'click' && (event.target as Element).closest('button');
    if (button) {
      pressed = button;
      event.preventDefault();
      event.stopPropagation();
    }
    await island.start();
    living = true;
    pressed?.click();
    pressed = null;
  };
  const places = document.querySelectorAll(`[data-island=${island.getAttribute('name')}]`);
  for (const place of [island, ...places]) {
    for (const type of ['pointermove', 'pointerdown', 'click', 'focusin']) {
      place.addEventListener(type, turn, true);
    }
  }
  if (isAsked()) island.start();
};
