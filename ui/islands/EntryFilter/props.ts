/** The contract of the `EntryFilter` island. */
import { Type } from 'typebox';
import { counted, shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  href: text('The whole list; a topic is added to it as `?tag=x`'),
  list: text('Id of the list, which has one item for each entry'),
  entries: Type.Array(Type.Array(Type.String()), {
    description: 'The tags of every entry, in the order of the list',
  }),
  labels: words({
    topics: text('Names the list of topics'),
    all: text('What the link to the whole list says'),
    whole: counted('Said of the whole list. `{count}` and `{total}` are how many entries it has'),
    part: counted('Said of one topic. `{count}` entries of `{total}` have it, `{tag}` is its name'),
    unknown: counted('Said where no entry has the topic, and all `{count}`, or `{total}`, are shown'),
  }),
});

export type Props = Type.Static<typeof schema>;
