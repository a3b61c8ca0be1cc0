/** The fields of a form, as content describes them. */
import { Type } from 'typebox';
import { oneOf, optional, shape, text } from '../schema.ts';

export const field = shape({
  name: text('The key of its value'),
  label: text('What stands above it'),
  type: optional(oneOf('text', 'email', 'tel', 'select', 'textarea')),
  required: optional(Type.Boolean({ description: 'Whether the browser insists on a value' })),
  rows: optional(Type.Integer({ minimum: 1, description: 'Lines of a textarea' })),
  autocomplete: optional(text('What the browser may fill in, as in HTML')),
  options: optional(
    Type.Array(
      shape({ value: Type.String({ description: 'Empty for no choice' }), label: text('What is read') }),
      { description: 'The choices of a select' },
    ),
  ),
  placeholder: optional(text('What a field shows while it is empty; on a select, an empty first choice')),
});

export const fields = Type.Array(field);

export type Field = Type.Static<typeof field>;
