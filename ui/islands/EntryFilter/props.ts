/** The contract of the `EntryFilter` island. */
import { Type } from 'typebox';
import { optional, shape, text, words } from '../../shared/schema.ts';
import { defaults } from './words.ts';

export const schema = shape({
  href: text('The whole list; a topic is added to it as `?tag=x`'),
  list: text('Id of the list, whose items have their tags in `data-tags`, with commas between them'),
  entries: Type.Array(Type.Array(Type.String()), { description: 'The tags of every entry' }),
  labels: optional(words(defaults)),
});

export type Props = Type.Static<typeof schema>;
