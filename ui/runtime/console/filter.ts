/** Filters the list while the operator types. The server filters, since there may be very many sites. */
import { refresh } from './refresh.ts';

/** Milliseconds after the last key until the filter is applied. */
const TYPING_PAUSE = 150;

export function listenForFilter(): void {
  const form = document.querySelector<HTMLFormElement>('form[data-filter]');
  if (!form) return;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const applyFilter = () => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form))
      if (typeof value === 'string' && value) query.set(name, value);
    const text = query.toString();
    history.replaceState(null, '', text ? `/?${text}` : '/');
    void refresh();
  };
  form.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(applyFilter, TYPING_PAUSE);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    clearTimeout(timer);
    applyFilter();
  });
}
