/** The contract of the `Toaster` island. */
import type { Type } from 'typebox';
import { shape, text, words } from '../../shared/schema.ts';

/** Radix writes style attributes when rendered on the server, which the site's policy forbids. */
export const server = false;

export const schema = shape({
  labels: words({
    region: text('Names the region. `{hotkey}` is the key that leads there'),
    toast: text('What screen readers say before each toast'),
    close: text('What the closing button says'),
  }),
});

export type Props = Type.Static<typeof schema>;
