/** The list of toasts and what can happen to it. Pure; the bus in toast.ts owns the one list of a page. */

export interface ToastAction {
  label: string;
  /** How to reach the same without the toast, in words: what screen readers announce. */
  altText: string;
  /** Where it leads, or */
  href?: string;
  /** what it does. Either way the toast closes. */
  onSelect?: () => void;
}

export interface ToastOptions {
  title: string;
  description?: string;
  action?: ToastAction;
  variant?: 'default' | 'destructive';
  /** Milliseconds; 5000 by default. `Infinity` keeps it until it is dismissed. */
  duration?: number;
}

export interface Toast extends ToastOptions {
  id: string;
  /** False once dismissed; it is kept for a while so that it can leave with grace. */
  open: boolean;
}

export type ToastEvent =
  | { type: 'add'; toast: Toast }
  | { type: 'update'; id: string; options: Partial<ToastOptions> }
  | { type: 'dismiss'; id: string }
  | { type: 'remove'; id: string };

/** How many are kept, and so shown, at a time. */
export const LIMIT = 1;

/** The list after an event, newest first. The same list where the event changes nothing. */
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
