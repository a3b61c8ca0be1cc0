/** The contract of the `Header` island. */
import { Type } from 'typebox';
import { optional, shape, text, words } from '../../shared/schema.ts';

export const schema = shape({
  home: text('Target of the logo link'),
  name: text('Name in the logo'),
  mark: optional(text('URL of an SVG with a fragment, for `use`')),
  links: Type.Array(
    shape({
      label: text('Label of the link'),
      href: text('Target of the link'),
      current: Type.Boolean({ description: 'Whether the link is to the current page' }),
    }),
  ),
  labels: words({
    menu: text('Accessible name of the navigation, and label of the button that opens it'),
    close: text('Label of the button while the menu is open'),
  }),
});

export type Props = Type.Static<typeof schema>;
