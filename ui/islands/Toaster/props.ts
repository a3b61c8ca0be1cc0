/** The contract of the `Toaster` island. */
import type { Type } from 'typebox';
import { optional, shape, text } from '../../shared/schema.ts';

/** Radix writes style attributes when rendered on the server, which the site's policy forbids. */
export const server = false;

export const schema = shape({
  label: optional(text('Names the region; `Notifications` by default')),
  closeLabel: optional(text('What the closing button says; `Dismiss` by default')),
});

export type Props = Type.Static<typeof schema>;
