/**
 * Preserves what a visitor typed, pressed and focused when React renders an island anew, because a translator or an
 * extension had changed its markup.
 *
 * Old and new markup have the same controls in the same order, since both come from the same component and props.
 *
 * Runs in the browser, with mount.tsx.
 */

import { CONTROLS, keepPress } from './press.ts';

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** Records the island's controls. The returned function copies their state to the new controls. */
export function keepEntries(island: HTMLElement): () => void {
  const before = controls(island);
  const carryPress = keepPress(island);
  let focused = document.activeElement;
  const onFocus = ({ target }: Event) => {
    focused = target as Element;
  };
  island.addEventListener('focusin', onFocus);
  return () => {
    island.removeEventListener('focusin', onFocus);
    const replaced = !before.every((control) => control.isConnected);
    const successors = replaced ? paired(before, controls(island)) : new Map<HTMLElement, HTMLElement>();
    for (const [old, control] of successors) {
      // A click that waits for the island reaches the new control.
      old.addEventListener('click', () => control.click());
      if (isField(old) && isField(control)) copyEntry(old, control);
      // The visitor may have moved the focus meanwhile.
      if (old === focused && document.activeElement === document.body) {
        control.focus({ preventScroll: true });
        copySelection(old, control);
      }
    }
    carryPress((control) => successors.get(control as HTMLElement) ?? control);
  };
}

const controls = (island: HTMLElement) => [...island.querySelectorAll<HTMLElement>(CONTROLS)];

/**
 * Pairs each control with the new one at its place: the first button with the first button. Elements that an
 * extension added have no pair.
 */
function paired(before: HTMLElement[], after: HTMLElement[]): Map<HTMLElement, HTMLElement> {
  const pairs = new Map<HTMLElement, HTMLElement>();
  for (const old of before) {
    const { name } = old as Partial<Field>;
    const isAlike = (control: HTMLElement) =>
      control.localName === old.localName && (!name || (control as Partial<Field>).name === name);
    const alike = after.filter(isAlike);
    const control = alike[before.filter(isAlike).indexOf(old)];
    if (control && control !== old) pairs.set(old, control);
  }
  return pairs;
}

const isField = (control: HTMLElement): control is Field =>
  control instanceof HTMLInputElement ||
  control instanceof HTMLTextAreaElement ||
  control instanceof HTMLSelectElement;

/** Copies what was typed or chosen, and dispatches the events that a browser sends when a visitor types. */
function copyEntry(old: Field, field: Field) {
  const key = old instanceof HTMLInputElement && /^(checkbox|radio)$/.test(old.type) ? 'checked' : 'value';
  const entries = [old, field] as unknown as Record<string, unknown>[];
  if (old instanceof HTMLInputElement && old.type === 'file') return;
  if (entries[0]?.[key] === entries[1]?.[key]) return;
  // React tracks the element's own setter, and would otherwise ignore the event.
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), key)?.set?.call(field, entries[0]?.[key]);
  const types = key === 'checked' ? ['click'] : ['input', 'change'];
  for (const type of types) field.dispatchEvent(new Event(type, { bubbles: true }));
}

function copySelection(old: HTMLElement, control: HTMLElement) {
  const { selectionStart, selectionEnd } = old as HTMLInputElement;
  // Fields of type `email` have no selection.
  if (typeof selectionStart === 'number') {
    (control as HTMLInputElement).setSelectionRange(selectionStart, selectionEnd);
  }
}
