/**
 * A form field with its label and its error.
 *
 * The browser holds the value, so that input before the hydration is not lost.
 */
import { type SyntheticEvent, useId } from 'react';
import type { Field as Description } from './schema.ts';

export type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

interface Props {
  field: Description;
  /** The visible mark of a required field; assistive technology reads the control's attribute. */
  mark: string;
  error?: string;
  onInvalid?: (event: SyntheticEvent<Control>) => void;
  onInput?: (event: SyntheticEvent<Control>) => void;
}

export function Field({ field, mark, error, onInvalid, onInput }: Props) {
  const id = useId();
  const errorId = `${id}error`;
  const type = field.type ?? 'text';
  const control = {
    className: 'field-control',
    id,
    name: field.name,
    required: field.required ?? false,
    autoComplete: field.autocomplete ?? undefined,
    'aria-invalid': error ? true : undefined,
    'aria-describedby': error ? errorId : undefined,
    onInvalid,
    onInput,
  };
  const placeholder = field.placeholder ?? undefined;
  return (
    <div className="field" data-type={type} data-state={error ? 'invalid' : 'valid'}>
      <label className="field-label" htmlFor={id}>
        {field.label}
      </label>
      {field.required && (
        <span className="field-mark" aria-hidden="true">
          {mark}
        </span>
      )}
      {type === 'select' ? (
        <select {...control}>
          {placeholder && <option value="">{placeholder}</option>}
          {(field.options ?? []).map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      ) : type === 'textarea' ? (
        <textarea {...control} rows={field.rows ?? 4} placeholder={placeholder} />
      ) : (
        <input {...control} type={type} placeholder={placeholder} />
      )}
      {error && (
        <p className="field-error" id={errorId}>
          {error}
        </p>
      )}
    </div>
  );
}
