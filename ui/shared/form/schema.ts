/** The schema of a form's fields. */
import { Type } from 'typebox';
import { oneOf, optional, shape, text } from '../schema.ts';

export const field = shape({
  name: text('Key of the value'),
  label: text('Label above the field'),
  type: optional(oneOf('text', 'email', 'tel', 'select', 'textarea')),
  required: optional(Type.Boolean({ description: 'Whether the browser insists on a value' })),
  rows: optional(Type.Integer({ minimum: 1, description: 'Lines of a textarea' })),
  autocomplete: optional(text('Value of the `autocomplete` attribute of HTML')),
  options: optional(
    Type.Array(
      shape({ value: Type.String({ description: 'Empty for no choice' }), label: text('Visible label') }),
      { description: 'The choices of a select' },
    ),
  ),
  placeholder: optional(text('Text of an empty field; on a select, an empty first choice')),
});

export const fields = Type.Array(field);

export type Field = Type.Static<typeof field>;
