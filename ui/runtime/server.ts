/**
 * Renders an island and its props to HTML. Runs in QuickJS, in the rowhouse process, when a tenant is compiled.
 *
 * Sets two globals for the engine. There are no other globals except those of the language: no timers, no
 * `console`, no `Intl`.
 */

import { createElement, type FunctionComponent } from 'react';
import * as islands from '#islands';
import { renderToStaticMarkup, renderToString } from '#react-server';

declare global {
  /** Returns HTML to be hydrated. `prefix` must be unique on the page, and is also the element's `prefix` attribute. */
  var render: (name: string, propsJson: string, prefix: string) => string;
  /** Returns HTML that is never hydrated, for `client="none"`. */
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
