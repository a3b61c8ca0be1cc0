/**
 * Runs in QuickJS, in the rowhouse process, when a tenant is compiled: turns an island and its props into HTML.
 *
 * Sets two globals for the engine to call. There are no other globals here but the language's own: no timers,
 * no `console`, no `Intl`.
 */

import { createElement, type FunctionComponent } from 'react';
import * as islands from '#islands';
import { renderToStaticMarkup, renderToString } from '#react-server';

declare global {
  /** HTML to hydrate. `prefix` must be unique on the page and be the element's `prefix` attribute too. */
  var render: (name: string, propsJson: string, prefix: string) => string;
  /** HTML that never hydrates, for `client="none"`. */
  var renderStatic: (name: string, propsJson: string) => string;
}

const components = new Map<string, FunctionComponent<object>>(Object.entries(islands));

function element(name: string, propsJson: string) {
  const component = components.get(name);
  if (!component) {
    const known = [...components.keys()].join('`, `');
    throw new Error(`no island \`${name}\` renders on the server; those that do are \`${known}\``);
  }
  return createElement(component, JSON.parse(propsJson));
}

globalThis.render = (name, propsJson, prefix) =>
  renderToString(element(name, propsJson), { identifierPrefix: prefix });
globalThis.renderStatic = (name, propsJson) => renderToStaticMarkup(element(name, propsJson));
