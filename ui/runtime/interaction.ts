/**
 * The policy `client="interaction"`: an island starts when a visitor points at, focuses or clicks it, or any
 * element whose `data-island` has its name.
 *
 * A button that is clicked before the island is mounted is clicked again afterwards, so no click is lost. On a page
 * that was requested with a topic (see asked.ts) the island starts at once.
 *
 * Runs in the browser, as part of the loader.
 */
import { isAsked } from './asked.ts';
import type { When } from './when.ts';

export const interaction: When = (island) => {
  let pressed: HTMLElement | null | undefined;
  let living = false;
  const turn = async (event: Event & Partial<MouseEvent>) => {
    // A browser also sends `pointermove` for a resting pointer, when a page appears or scrolls under it.
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
