/**
 * The inquiry form. The visitor's own mail program sends the message; no server is called.
 *
 * Without scripts it is a `mailto:` form of type `text/plain`, as far as browsers support that. With scripts it
 * composes the message itself. It also shows the message in the page, for visitors whose browser opens no mail
 * program.
 */
import { type SyntheticEvent, useState } from 'react';
import { useErrors } from '../../shared/form/errors.ts';
import { Field } from '../../shared/form/field.tsx';
import { MAILTO_LIMIT, mailtoUrl, messageText } from './message.ts';
import { type Message, Panel } from './panel.tsx';
import type { Props } from './props.ts';

export default function InquiryForm({ name, fields, submit, email, subject, action, labels }: Props) {
  const address = { email, subject };
  const { errors, ...checks } = useErrors(labels);
  const [message, setMessage] = useState<Message>();

  // The browser submits only forms that pass its own checks.
  const onSubmit = (event: SyntheticEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const text = messageText(fields, (key) => String(data.get(key) ?? ''));
    const url = mailtoUrl(address, text);
    const fits = url.length <= MAILTO_LIMIT;
    setMessage({ text, fits, url: fits ? url : mailtoUrl(address) });
    if (fits) window.location.href = url;
  };

  return (
    <div className="inquiry-form" data-state={message ? 'done' : 'open'}>
      <form
        className="inquiry-form-fields"
        name={name ?? undefined}
        action={action ?? mailtoUrl(address)}
        method="post"
        encType="text/plain"
        onSubmit={onSubmit}
      >
        {fields.map((field) => (
          <Field
            key={field.name}
            field={field}
            mark={labels.required}
            error={errors[field.name]}
            {...checks}
          />
        ))}
        <p className="form-actions">
          <button className="button" data-style="primary" type="submit">
            {submit}
          </button>
        </p>
      </form>
      {message && <Panel message={message} email={email} labels={labels} />}
    </div>
  );
}
