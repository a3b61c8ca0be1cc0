/**
 * The toast bus: any island calls `toast({ title: ... })`, and the `Toaster` island shows the toast.
 *
 * Islands are separate React roots that share this module. A toast that is sent before the Toaster is mounted waits
 * for it.
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

/** Shows a toast, and replaces the current one. */
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

/** Closes a toast, and removes it from the list later. */
export function dismiss(id: string): void {
  if (send({ type: 'dismiss', id })) setTimeout(() => send({ type: 'remove', id }), REMOVAL_DELAY);
}

/** Returns the toasts of this page, newest first. */
export function current(): readonly Toast[] {
  return toasts;
}

/** Calls `listener` after every change, until the returned function is called. */
export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Applies an event. Returns whether it changed the list. */
function send(event: ToastEvent): boolean {
  const next = reduce(toasts, event);
  if (next === toasts) return false;
  toasts = next;
  for (const listener of listeners) listener();
  return true;
}

/** Removes an action that is not accessible to everyone, which is an error in the code that sent the toast. */
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
