/**
 * The browser checks the fields and stops the form, as ever; this puts beside each field, in the page's own words,
 * what the browser found.
 */
import { type SyntheticEvent, useState } from 'react';
import type { Control } from './field.tsx';

export interface ErrorWords {
  missing: string;
  email: string;
}

/** The words for what is wrong with a control. */
export function describe({ validity, validationMessage }: Control, words: ErrorWords): string {
  if (validity.valueMissing) return words.missing;
  if (validity.typeMismatch) return words.email;
  return validationMessage;
}

/** The errors by field name, and the handlers that keep them true. */
export function useErrors(words: ErrorWords) {
  const [errors, setErrors] = useState<Readonly<Record<string, string>>>({});
  const set = (name: string, error: string) => setErrors((all) => ({ ...all, [name]: error }));
  return {
    errors,
    onInvalid: ({ currentTarget }: SyntheticEvent<Control>) => {
      set(currentTarget.name, describe(currentTarget, words));
    },
    onInput: ({ currentTarget }: SyntheticEvent<Control>) => {
      // A field is not reproached while it is being filled in for the first time, and is cleared once it is right.
      if (errors[currentTarget.name] && currentTarget.validity.valid) set(currentTarget.name, '');
    },
  };
}
