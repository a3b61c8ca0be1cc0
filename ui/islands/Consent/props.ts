/** The contract of the `Consent` island. */
import type { Type } from 'typebox';
import { shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  labels: words({
    region: text('Accessible name of the region'),
    title: text('Heading of the notice'),
    text: text('Text of the notice'),
    accept: text('Label of the button that accepts'),
    decline: text('Label of the button that declines'),
  }),
});

export type Props = Type.Static<typeof schema>;
