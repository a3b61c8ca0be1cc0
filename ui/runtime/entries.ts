/**
 * Keeps what a visitor typed, pressed and focused when an island is rendered anew, because a translator or an extension
 * had changed its markup.
 *
 * The controls of the new markup are those of the old one in the same order: both come from the same component and props.
 *
 * Runs in the browser, with mount.tsx.
 */

import { CONTROLS, keepPress } from './press.ts';

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** Looks at the island's controls. The function that it returns carries over what they hold to those in their place. */
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
      // A press that waits for the island reaches the control that is shown now.
      old.addEventListener('click', () => control.click());
      if (isField(old) && isField(control)) copyEntry(old, control);
      // A visitor who has moved on meanwhile has the focus elsewhere.
      if (old === focused && document.activeElement === document.body) {
        control.focus({ preventScroll: true });
        copySelection(old, control);
      }
    }
    carryPress((control) => successors.get(control as HTMLElement) ?? control);
  };
}

const controls = (island: HTMLElement) => [...island.querySelectorAll<HTMLElement>(CONTROLS)];

/** Each control with the one in its place: the first button with the first button. What an extension adds pairs with nothing. */
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

/** Copies what was typed or chosen, and tells the island as a browser does when a visitor types. */
function copyEntry(old: Field, field: Field) {
  const key = old instanceof HTMLInputElement && /^(checkbox|radio)$/.test(old.type) ? 'checked' : 'value';
  const entries = [old, field] as unknown as Record<string, unknown>[];
  if (old instanceof HTMLInputElement && old.type === 'file') return;
  if (entries[0]?.[key] === entries[1]?.[key]) return;
  // React listens to the setter of the element itself, and would take the event for its own doing.
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
