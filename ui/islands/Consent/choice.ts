/**
 * The visitor's choice, as an external store for React. The device stores it; if storage is blocked, the open page
 * remembers it.
 */

export type Choice = 'accepted' | 'declined';

/** The key in the storage. */
export const KEY = 'rowhouse-consent';

/** Replaces the storage if that is blocked. */
let remembered: Choice | undefined;
const listeners = new Set<() => void>();

/** Returns the choice, if one was made. */
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
