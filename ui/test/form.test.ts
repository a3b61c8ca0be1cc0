/** The errors of form fields. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describe } from '../shared/form/errors.ts';
import type { Control } from '../shared/form/field.tsx';

const words = { missing: 'Fill this in.', email: 'An address, please.' };
const control = (validity: Partial<ValidityState>) =>
  ({ validity, validationMessage: 'as the browser says' }) as Control;

test('a field shows the page’s words, or else the browser’s', () => {
  assert.equal(describe(control({ valueMissing: true }), words), words.missing);
  assert.equal(describe(control({ typeMismatch: true }), words), words.email);
  assert.equal(describe(control({ tooLong: true }), words), 'as the browser says');
});
