/** Commands: a form with a token is sent without leaving the page, so that the token need not be given again. */
import { refresh } from './refresh.ts';

const DONE = 'Done.';
const AWAY = 'The server does not answer.';

export function listenForCommands(): void {
  document.addEventListener('submit', (event) => {
    const { target: form, submitter } = event;
    if (!(form instanceof HTMLFormElement) || !form.hasAttribute('data-command')) return;
    if (!(submitter instanceof HTMLButtonElement)) return;
    event.preventDefault();
    void send(form, submitter);
  });
}

async function send(form: HTMLFormElement, button: HTMLButtonElement): Promise<void> {
  const outcome = form.querySelector<HTMLElement>('#outcome');
  const tell = (words: string, failed: boolean) => {
    if (!outcome) return;
    outcome.toggleAttribute('data-failed', failed);
    outcome.textContent = words;
  };
  const token = new FormData(form).get('token');
  const body = new URLSearchParams({ token: typeof token === 'string' ? token : '' });
  tell('', false);
  try {
    const answer = await fetch(button.formAction, { method: 'POST', body });
    const said = (await answer.json().catch(() => ({}))) as { error?: string };
    tell(
      answer.ok ? `${button.textContent?.trim()}: ${DONE}` : (said.error ?? answer.statusText),
      !answer.ok,
    );
  } catch {
    tell(AWAY, true);
  }
  await refresh();
}
