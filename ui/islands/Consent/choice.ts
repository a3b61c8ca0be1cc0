/**
 * The visitor's choice, as an external store for React. It is kept on the device, and where storage is blocked for as
 * long as the page is open.
 */

export type Choice = 'accepted' | 'declined';

/** What the storage keeps it under. */
export const KEY = 'rowhouse-consent';

/** Stands in for the storage where that is blocked. */
let remembered: Choice | undefined;
const listeners = new Set<() => void>();

/** The choice, if one was made. */
export function choice(): Choice | undefined {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(KEY);
  } catch {
    // Blocked: only this page remembers.
  }
  return stored === 'accepted' || stored === 'declined' ? stored : remembered;
}

export function choose(value: Choice): void {
  remembered = value;
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // Blocked or full: only this page remembers.
  }
  for (const listener of listeners) listener();
}

/** Calls `listener` when the choice may have changed, here or in another tab. */
export function onChoice(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', listener);
  };
}
