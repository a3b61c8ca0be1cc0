/** The contract of the `ContactForm` island. */
import type { Type } from 'typebox';
import { fields } from '../../shared/form/schema.ts';
import { optional, shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  name: optional(text('Name of the form')),
  fields,
  submit: text('What the button says'),
  notice: shape({
    title: text('What the toast says when the button is pressed'),
    text: optional(text('More of it')),
    action: optional(
      shape({
        label: text('What the link in the toast says'),
        href: text('Where it leads'),
        altText: optional(text('What screen readers say of it; the label by default')),
      }),
    ),
  }),
  labels: words({
    required: text('Marks a field that must be filled in'),
  }),
});

export type Props = Type.Static<typeof schema>;
