/** The contract of the `InquiryForm` island. */
import type { Type } from 'typebox';
import { fields } from '../../shared/form/schema.ts';
import { optional, shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  name: optional(text('Name of the form')),
  fields,
  submit: text('Label of the button'),
  email: text('Email address of the recipient'),
  subject: text('Subject of the message'),
  action: optional(
    text('The mailto URL for browsers without scripts; made from address and subject by default'),
  ),
  labels: words({
    required: text('Mark of a required field'),
    missing: text('Error of an empty required field'),
    email: text('Error of an invalid email address'),
    opened_title: text('Heading of the message once it was passed to the mail program'),
    opened_text: text('Advice if no program opened; the email address follows'),
    long_title: text('Heading of a message that is too long for the mail program'),
    long_text: text('Advice for a message that is too long; the email address follows'),
    message: text('Label above the message'),
    copy: text('Label of the button that copies the message'),
    copied: text('Status once the message is copied'),
    not_copied: text('Status if the message could not be copied, and is selected instead'),
    again: text('Label of the link that opens the mail program again'),
    empty: text('Label of the link that opens an empty email'),
  }),
});

export type Props = Type.Static<typeof schema>;
