/** The list of toasts and its events. Pure; the bus in toast.ts owns the one list of a page. */

export interface ToastAction {
  label: string;
  /** How to do the same without the toast, for screen readers. */
  altText: string;
  /** The target of the link. An action has either a target or a handler; the toast closes in both cases. */
  href?: string;
  /** The handler of the button. */
  onSelect?: () => void;
}

export interface ToastOptions {
  title: string;
  description?: string;
  action?: ToastAction;
  variant?: 'default' | 'destructive';
  /** Milliseconds until the toast closes; 5000 by default. With `Infinity` it stays until it is dismissed. */
  duration?: number;
}

export interface Toast extends ToastOptions {
  id: string;
  /** False once dismissed. The toast stays in the list for the closing animation. */
  open: boolean;
}

export type ToastEvent =
  | { type: 'add'; toast: Toast }
  | { type: 'update'; id: string; options: Partial<ToastOptions> }
  | { type: 'dismiss'; id: string }
  | { type: 'remove'; id: string };

/** Maximum number of toasts in the list, and so on the screen. */
export const LIMIT = 1;

/** Returns the list after an event, newest first. Returns the same list if the event changes nothing. */
export function reduce(toasts: readonly Toast[], event: ToastEvent): readonly Toast[] {
  switch (event.type) {
    case 'add':
      return [event.toast, ...toasts].slice(0, LIMIT);
    case 'update':
      return change(toasts, event.id, event.options);
    case 'dismiss':
      return toasts.some(({ id, open }) => id === event.id && open)
        ? change(toasts, event.id, { open: false })
        : toasts;
    case 'remove':
      return toasts.some(({ id }) => id === event.id) ? toasts.filter(({ id }) => id !== event.id) : toasts;
    default:
      return event satisfies never;
  }
}

function change(toasts: readonly Toast[], id: string, changes: Partial<Toast>): readonly Toast[] {
  if (!toasts.some((toast) => toast.id === id)) return toasts;
  return toasts.map((toast) => (toast.id === id ? { ...toast, ...changes } : toast));
}
