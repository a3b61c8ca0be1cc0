/** The list follows what is typed; the server looks, since it may have very many sites. */
import { refresh } from './refresh.ts';

const PAUSE = 150;

export function listenForFilter(): void {
  const form = document.querySelector<HTMLFormElement>('form[data-filter]');
  if (!form) return;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const follow = () => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form))
      if (typeof value === 'string' && value) query.set(name, value);
    const text = query.toString();
    history.replaceState(null, '', text ? `/?${text}` : '/');
    void refresh();
  };
  form.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(follow, PAUSE);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    clearTimeout(timer);
    follow();
  });
}
