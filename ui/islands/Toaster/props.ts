/** The contract of the `Toaster` island. */
import type { Type } from 'typebox';
import { shape, text, words } from '../../shared/schema.ts';

/** Radix writes style attributes when rendered on the server, which the site's policy forbids. */
export const server = false;

export const schema = shape({
  labels: words({
    region: text('Accessible name of the region. `{hotkey}` is the key that moves the focus there'),
    toast: text('Text that screen readers read before each toast'),
    close: text('Label of the button that closes the toast'),
  }),
});

export type Props = Type.Static<typeof schema>;
