/** The contract of the `Search` island. */
import type { Type } from 'typebox';
import { shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  index: text('Where the index is, as `site.search` of a template has it'),
  labels: words({
    label: text('Names the field, and stands in it while it is empty'),
    found: text(
      'Said of what was found; `{count}` is how many places are shown, in digits and in no plural form',
    ),
    nothing: text('Said where nothing was found'),
    failed: text('Said where the index could not be had'),
  }),
});

export type Props = Type.Static<typeof schema>;
