/** The contract of the `InquiryForm` island. */
import type { Type } from 'typebox';
import { fields } from '../../shared/form/schema.ts';
import { optional, shape, text, words } from '../../shared/schema.ts';
import { defaults } from './words.ts';

export const schema = shape({
  name: optional(text('Name of the form')),
  fields,
  submit: text('What the button says'),
  email: text('Address that the message goes to'),
  subject: text('Subject of the message'),
  action: optional(
    text('The mailto URL for browsers without scripts; made from address and subject by default'),
  ),
  labels: optional(words(defaults)),
});

export type Props = Type.Static<typeof schema>;
