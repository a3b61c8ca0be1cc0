/** The contract of the `Copy` island. */
import type { Type } from 'typebox';
import { shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  labels: words({
    copied: text('Status once the code is copied'),
    not_copied: text('Status if the code could only be selected'),
  }),
});

export type Props = Type.Static<typeof schema>;
