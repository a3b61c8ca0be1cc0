/** The contract of the `ContactForm` island. */
import type { Type } from 'typebox';
import { fields } from '../../shared/form/schema.ts';
import { optional, shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  name: optional(text('Name of the form')),
  fields,
  submit: text('Label of the button'),
  notice: shape({
    title: text('Title of the toast that follows a press of the button'),
    text: optional(text('Further text of the toast')),
    action: optional(
      shape({
        label: text('Label of the link in the toast'),
        href: text('Target of the link'),
        altText: optional(text('Text for screen readers; the label by default')),
      }),
    ),
  }),
  labels: words({
    required: text('Mark of a required field'),
  }),
});

export type Props = Type.Static<typeof schema>;
