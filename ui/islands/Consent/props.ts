/** The contract of the `Consent` island. */
import type { Type } from 'typebox';
import { shape, text } from '../../shared/schema.ts';

export const schema = shape({
  title: text('Heading of the notice'),
  text: text('What it says'),
  accept: text('What the button of agreement says'),
  decline: text('What the other button says'),
  label: text('Names the region'),
});

export type Props = Type.Static<typeof schema>;
