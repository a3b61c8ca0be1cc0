/**
 * Sends commands: a form with a token is sent without leaving the page, so that the token need not be entered
 * again.
 */
import { refresh } from './refresh.ts';

const DONE = 'Done.';
const NO_RESPONSE = 'The server does not respond.';

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
  const showOutcome = (words: string, failed: boolean) => {
    if (!outcome) return;
    outcome.toggleAttribute('data-failed', failed);
    outcome.textContent = words;
  };
  const token = new FormData(form).get('token');
  const body = new URLSearchParams({ token: typeof token === 'string' ? token : '' });
  showOutcome('', false);
  try {
    const response = await fetch(button.formAction, { method: 'POST', body });
    const refusal = (await response.json().catch(() => ({}))) as { error?: string };
    showOutcome(
      response.ok ? `${button.textContent?.trim()}: ${DONE}` : (refusal.error ?? response.statusText),
      !response.ok,
    );
  } catch {
    showOutcome(NO_RESPONSE, true);
  }
  await refresh();
}
