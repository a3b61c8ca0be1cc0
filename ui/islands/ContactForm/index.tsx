/**
 * A form that sends nothing, and says so when its button is pressed. What was typed stays.
 *
 * `method="dialog"` makes a form outside a dialog do nothing, even if a browser submits it on Enter and no script
 * stops it.
 */
import { Field } from '../../shared/form/field.tsx';
import { toast } from '../../shared/toast.ts';
import type { Props } from './props.ts';

export default function ContactForm({ name, fields, submit, notice, labels }: Props) {
  const { title, text, action } = notice;

  const say = () => {
    toast({
      title,
      description: text ?? undefined,
      action: action
        ? { label: action.label, href: action.href, altText: action.altText ?? action.label }
        : undefined,
    });
  };

  return (
    <form className="contact-form" name={name ?? undefined} method="dialog" data-island="Toaster">
      {fields.map((field) => (
        <Field key={field.name} field={field} mark={labels.required} />
      ))}
      <noscript>
        <p className="form-note">
          {title}. {action && <a href={action.href}>{action.label}</a>}
        </p>
      </noscript>
      <p className="form-actions">
        <button className="button" data-style="primary" type="button" onClick={say}>
          {submit}
        </button>
      </p>
    </form>
  );
}
