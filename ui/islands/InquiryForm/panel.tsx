/** What stands below the inquiry form once it was submitted: the message, for those whose mail program did not open. */
import { useEffect, useId, useRef, useState } from 'react';
import { copyFrom } from './copy.ts';
import type { Words } from './words.ts';

export interface Message {
  text: string;
  /** Whether it fits into a `mailto:` URL. */
  fits: boolean;
  /** Opens the mail program: with the message where it fits. */
  url: string;
}

export function Panel({ message, email, words }: { message: Message; email: string; words: Words }) {
  const [copied, setCopied] = useState<boolean>();
  const title = useRef<HTMLHeadingElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const id = useId();

  // Every submission is a message of its own: the reader is taken to it.
  useEffect(() => {
    if (message) title.current?.focus();
    setCopied(undefined);
  }, [message]);

  return (
    <section
      className="message-panel"
      data-state={message.fits ? 'opened' : 'long'}
      aria-labelledby={`${id}title`}
    >
      <h3 className="message-panel-title" id={`${id}title`} ref={title} tabIndex={-1}>
        {message.fits ? words.openedTitle : words.longTitle}
      </h3>
      <p>
        {message.fits ? words.openedText : words.longText}{' '}
        <a className="message-panel-address" href={`mailto:${email}`}>
          {email}
        </a>
      </p>
      <label className="field-label" htmlFor={`${id}text`}>
        {words.message}
      </label>
      <textarea
        className="field-control"
        id={`${id}text`}
        ref={area}
        readOnly
        rows={Math.min(message.text.split('\n').length + 1, 12)}
        value={message.text}
      />
      <p className="form-actions">
        <button
          className="button"
          data-style="primary"
          type="button"
          onClick={async () => area.current && setCopied(await copyFrom(area.current))}
        >
          {words.copy}
        </button>
        <a className="button" data-style="secondary" href={message.url}>
          {message.fits ? words.again : words.empty}
        </a>
      </p>
      <p className="message-panel-status" role="status">
        {copied === undefined ? '' : copied ? words.copied : words.notCopied}
      </p>
    </section>
  );
}
