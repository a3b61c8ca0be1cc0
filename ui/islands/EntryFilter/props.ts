/** The contract of the `EntryFilter` island. */
import { Type } from 'typebox';
import { counted, shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  href: text('Address of the complete list; a topic is appended as `?tag=x`'),
  list: text('Id of the list, which has one item for each entry'),
  entries: Type.Array(Type.Array(Type.String()), {
    description: 'The tags of every entry, in the order of the list',
  }),
  labels: words({
    topics: text('Accessible name of the list of topics'),
    all: text('Label of the link to the complete list'),
    rest: counted('Label of the disclosure with the `{count}` topics that one entry has'),
    whole: counted('Status of the complete list. `{count}` and `{total}` are the number of entries'),
    part: counted('Status of one topic. `{count}` entries of `{total}` have it, `{tag}` is its name'),
    unknown: counted('Status if no entry has the topic and all `{count}` entries, or `{total}`, are shown'),
  }),
});

export type Props = Type.Static<typeof schema>;
