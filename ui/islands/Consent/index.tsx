/**
 * The consent notice: shown until the visitor makes a choice, and again when the visitor presses an element with
 * the attribute `data-consent-open`.
 *
 * The notice is hidden in the server's markup, since only the browser knows whether a choice was made. Without a
 * choice, the loader shows it (runtime/once.ts) before the island is mounted. The notice never traps the focus.
 * When a button opens it, it takes the focus and later returns it.
 */
import { type KeyboardEvent, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { type Choice, choice, choose, KEY, onChoice } from './choice.ts';
import type { Props } from './props.ts';

export default function Consent({ labels }: Props) {
  const chosen = useSyncExternalStore(onChoice, choice, () => 'unknown' as const);
  /** The element that opened the notice; a new object for each request. */
  const [request, setRequest] = useState<{ opener: HTMLElement }>();
  const section = useRef<HTMLElement>(null);
  const open = request !== undefined || chosen === undefined;

  useEffect(() => {
    const onClick = ({ target }: MouseEvent) => {
      const opener = target instanceof Element && target.closest<HTMLElement>('[data-consent-open]');
      if (opener) setRequest({ opener });
    };
    document.addEventListener('click', onClick);
    return () => document.removeEventListener('click', onClick);
  }, []);

  useEffect(() => {
    if (request) section.current?.focus();
  }, [request]);

  const close = () => {
    request?.opener.focus();
    setRequest(undefined);
  };
  const settle = (value: Choice) => {
    choose(value);
    close();
  };
  const onKeyDown = ({ key }: KeyboardEvent) => {
    // Without a choice the notice stays, since it would only return on the next page.
    if (key === 'Escape' && chosen) close();
  };

  return (
    <section
      ref={section}
      className="consent"
      aria-label={labels.region}
      data-once={KEY}
      hidden={!open}
      suppressHydrationWarning // of `hidden`, which the loader may have changed
      tabIndex={-1}
      onKeyDown={onKeyDown}
    >
      <h2 className="consent-title">{labels.title}</h2>
      <p className="consent-text">{labels.text}</p>
      <p className="consent-actions">
        <button className="button" data-style="primary" type="button" onClick={() => settle('accepted')}>
          {labels.accept}
        </button>
        <button className="button" data-style="secondary" type="button" onClick={() => settle('declined')}>
          {labels.decline}
        </button>
      </p>
    </section>
  );
}
