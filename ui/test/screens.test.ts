/** Screens that appear only after an event: they have no UI strings of their own either. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { Panel } from '../islands/InquiryForm/panel.tsx';
import { Boundary } from '../runtime/boundary.tsx';
import { inquiryForm } from './samples.ts';
import { wordsOf } from './said.ts';

/** Returns the texts of the error screen of the island `Odd`, on a page whose body has these data attributes. */
function screen(dataset: Record<string, string>): string[] {
  Object.assign(globalThis, { DEV: false, document: { body: { dataset } } });
  const boundary = new Boundary({ island: 'Odd', onFail: () => true, children: null });
  boundary.state = { failure: { cause: new Error('the cause') }, screen: true };
  return wordsOf(renderToStaticMarkup(boundary.render()));
}

test('the error screen uses the page’s words', () => {
  const words = { errorTitle: 'Das ging schief', errorText: 'Dieser Teil ({island}) läuft nicht mehr.' };
  assert.deepEqual(screen(words), ['Das ging schief', 'Dieser Teil (Odd) läuft nicht mehr.']);
});

test('the error screen names the island on a page without words', () => {
  assert.deepEqual(screen({}), ['Odd']);
});

test('the panel of an inquiry shows only the page’s words and the message', () => {
  const { email, labels } = inquiryForm;
  const said = (fits: boolean) => {
    const message = { text: 'Name: Ada', fits, url: 'mailto:x' };
    return wordsOf(renderToStaticMarkup(createElement(Panel, { message, email, labels })));
  };
  const { opened_title, opened_text, long_title, long_text, message, copy, again, empty } = labels;
  assert.deepEqual(said(true), [opened_title, opened_text, email, message, 'Name: Ada', copy, again]);
  assert.deepEqual(said(false), [long_title, long_text, email, message, 'Name: Ada', copy, empty]);
});
