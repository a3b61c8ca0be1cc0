/** The contract of the `Header` island. */
import { Type } from 'typebox';
import { optional, shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  home: text('Where the logo leads'),
  name: text('The name in the logo'),
  mark: optional(text('URL of a drawing with a fragment, for an SVG `use`')),
  links: Type.Array(
    shape({
      label: text('What the link says'),
      href: text('Where it leads'),
      current: Type.Boolean({ description: 'Whether this is the page being shown' }),
    }),
  ),
  labels: words({
    menu: text('Names the navigation and the button that opens it'),
    close: text('What the button says while the menu is open'),
  }),
});

export type Props = Type.Static<typeof schema>;
