/** The contract of the `InquiryForm` island. */
import type { Type } from 'typebox';
import { fields } from '../../shared/form/schema.ts';
import { optional, shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  name: optional(text('Name of the form')),
  fields,
  submit: text('What the button says'),
  email: text('Address that the message goes to'),
  subject: text('Subject of the message'),
  action: optional(
    text('The mailto URL for browsers without scripts; made from address and subject by default'),
  ),
  labels: words({
    required: text('Marks a field that must be filled in'),
    missing: text('What is wrong with a field that must be filled in and is empty'),
    email: text('What is wrong with an email address that is none'),
    opened_title: text('Heading of the message once it was handed to the mail program'),
    opened_text: text('What to do if no program opened. The email address follows'),
    long_title: text('Heading of a message too long to hand over'),
    long_text: text('What to do with it. The email address follows'),
    message: text('Stands above the message'),
    copy: text('What the button says that copies the message'),
    copied: text('Said once the message is copied'),
    not_copied: text('Said where the message could not be copied, and is selected instead'),
    again: text('What the link says that hands the message over once more'),
    empty: text('What the link says that opens an email without the message'),
  }),
});

export type Props = Type.Static<typeof schema>;
