/**
 * Shows the errors that the browser finds in a form's fields, next to each field and in the page's own words. The
 * browser itself still checks the fields and stops the form.
 */
import { type SyntheticEvent, useState } from 'react';
import type { Control } from './field.tsx';

export interface ErrorWords {
  missing: string;
  email: string;
}

/** Returns the text for the error of a control. */
export function describe({ validity, validationMessage }: Control, words: ErrorWords): string {
  if (validity.valueMissing) return words.missing;
  if (validity.typeMismatch) return words.email;
  return validationMessage;
}

/** Returns the errors by field name, and the handlers that update them. */
export function useErrors(words: ErrorWords) {
  const [errors, setErrors] = useState<Readonly<Record<string, string>>>({});
  const set = (name: string, error: string) => setErrors((all) => ({ ...all, [name]: error }));
  return {
    errors,
    onInvalid: ({ currentTarget }: SyntheticEvent<Control>) => {
      set(currentTarget.name, describe(currentTarget, words));
    },
    onInput: ({ currentTarget }: SyntheticEvent<Control>) => {
      // A field shows no error while it is filled in for the first time, and loses its error once it is valid.
      if (errors[currentTarget.name] && currentTarget.validity.valid) set(currentTarget.name, '');
    },
  };
}
