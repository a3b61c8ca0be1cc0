/** The contract of the `Search` island. */
import type { Type } from 'typebox';
import { shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  index: text('Address of the index, as in `site.search` of a template'),
  labels: words({
    label: text('Accessible name and placeholder of the field'),
    found: text('Status of the results; `{count}` is their number, in digits and without plural forms'),
    nothing: text('Status if nothing was found'),
    failed: text('Status if the index could not be loaded'),
  }),
});

export type Props = Type.Static<typeof schema>;
