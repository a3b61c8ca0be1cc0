/** The contract of the `Consent` island. */
import type { Type } from 'typebox';
import { shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  labels: words({
    region: text('Names the region'),
    title: text('Heading of the notice'),
    text: text('What it says'),
    accept: text('What the button of agreement says'),
    decline: text('What the other button says'),
  }),
});

export type Props = Type.Static<typeof schema>;
