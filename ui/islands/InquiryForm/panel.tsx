/** The panel below a submitted inquiry form: the message, for visitors whose mail program did not open. */
import { useEffect, useId, useRef, useState } from 'react';
import { copyFrom } from './copy.ts';
import type { Props } from './props.ts';

export interface Message {
  text: string;
  /** Whether the message fits into a `mailto:` URL. */
  fits: boolean;
  /** Opens the mail program, with the message if it fits. */
  url: string;
}

interface PanelProps extends Pick<Props, 'email' | 'labels'> {
  message: Message;
}

export function Panel({ message, email, labels }: PanelProps) {
  const [copied, setCopied] = useState<boolean>();
  const title = useRef<HTMLHeadingElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const id = useId();

  // Every submission is a new message, to which the focus moves.
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
        {message.fits ? labels.opened_title : labels.long_title}
      </h3>
      <p>
        {message.fits ? labels.opened_text : labels.long_text}{' '}
        <a className="message-panel-address" href={`mailto:${email}`}>
          {email}
        </a>
      </p>
      <label className="field-label" htmlFor={`${id}text`}>
        {labels.message}
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
          {labels.copy}
        </button>
        <a className="button" data-style="secondary" href={message.url}>
          {message.fits ? labels.again : labels.empty}
        </a>
      </p>
      <p className="message-panel-status" role="status">
        {copied === undefined ? '' : copied ? labels.copied : labels.not_copied}
      </p>
    </section>
  );
}
