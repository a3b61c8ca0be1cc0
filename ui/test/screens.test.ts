/** What is shown only once something has happened has no words of its own either. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { Panel } from '../islands/InquiryForm/panel.tsx';
import { Boundary } from '../runtime/boundary.tsx';
import { inquiryForm } from './samples.ts';
import { wordsOf } from './said.ts';

/** What the screen says that stands in for the island `Odd`, on a page whose body has these data. */
function screen(dataset: Record<string, string>): string[] {
  Object.assign(globalThis, { DEV: false, document: { body: { dataset } } });
  const boundary = new Boundary({ island: 'Odd', onFail: () => true, children: null });
  boundary.state = { failure: { cause: new Error('the cause') }, screen: true };
  return wordsOf(renderToStaticMarkup(boundary.render()));
}

test('the error screen has the words of the page', () => {
  const words = { errorTitle: 'Das ging schief', errorText: 'Dieser Teil ({island}) läuft nicht mehr.' };
  assert.deepEqual(screen(words), ['Das ging schief', 'Dieser Teil (Odd) läuft nicht mehr.']);
});

test('on a page without such words it names the island', () => {
  assert.deepEqual(screen({}), ['Odd']);
});

test('the message of an inquiry stands among the words of the page', () => {
  const { email, labels } = inquiryForm;
  const said = (fits: boolean) => {
    const message = { text: 'Name: Ada', fits, url: 'mailto:x' };
    return wordsOf(renderToStaticMarkup(createElement(Panel, { message, email, labels })));
  };
  const { opened_title, opened_text, long_title, long_text, message, copy, again, empty } = labels;
  assert.deepEqual(said(true), [opened_title, opened_text, email, message, 'Name: Ada', copy, again]);
  assert.deepEqual(said(false), [long_title, long_text, email, message, 'Name: Ada', copy, empty]);
});
