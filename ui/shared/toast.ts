/**
 * The toast bus: any island says `toast({ title: ... })`, and the `Toaster` island shows it.
 *
 * Islands are separate React roots; they meet in this module, of which a page has one. A toast that is sent before
 * the Toaster has arrived waits for it.
 */
import { reduce, type Toast, type ToastAction, type ToastEvent, type ToastOptions } from './toast-state.ts';

/** Milliseconds between a toast's dismissal and its removal from the list. */
export const REMOVAL_DELAY = 1_000_000;

export interface ToastHandle {
  id: string;
  update: (options: Partial<ToastOptions>) => void;
  dismiss: () => void;
}

let toasts: readonly Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

/** Shows a toast, in place of the one that is shown. */
export function toast(options: ToastOptions): ToastHandle {
  count += 1;
  const id = `toast-${count}`;
  send({ type: 'add', toast: { ...checked(options), id, open: true } });
  return {
    id,
    update: (changes) => send({ type: 'update', id, options: checked(changes) }),
    dismiss: () => dismiss(id),
  };
}

/** Closes a toast; later it leaves the list. */
export function dismiss(id: string): void {
  if (send({ type: 'dismiss', id })) setTimeout(() => send({ type: 'remove', id }), REMOVAL_DELAY);
}

/** The toasts of this page, newest first. */
export function current(): readonly Toast[] {
  return toasts;
}

/** Calls `listener` after every change, until the function it returns is called. */
export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Whether the event changed anything. */
function send(event: ToastEvent): boolean {
  const next = reduce(toasts, event);
  if (next === toasts) return false;
  toasts = next;
  for (const listener of listeners) listener();
  return true;
}

/** Without its action, if that cannot be shown to everyone: an error in the code that sent it. */
function checked<O extends Partial<ToastOptions>>(options: O): O {
  const { action } = options;
  if (!action) return options;
  const blank = (['label', 'altText'] satisfies (keyof ToastAction)[]).filter((key) => !action[key].trim());
  if (blank.length === 0) return options;
  console.error(
    `the action of toast \`${options.title}\` has an empty \`${blank.join('` and an empty `')}\`: it is left out`,
  );
  return { ...options, action: undefined };
}
