/** The inquiry as text and as a URL. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mailtoUrl, messageText } from '../islands/InquiryForm/message.ts';
import type { Field } from '../shared/form/schema.ts';

const fields: Field[] = [
  { name: 'name', label: 'Your Name' },
  { name: 'company', label: 'Company' },
  {
    name: 'budget',
    label: 'Budget Range',
    type: 'select',
    options: [
      { value: '', label: 'Select' },
      { value: '25-75k', label: '$25k–$75k' },
    ],
  },
  { name: 'brief', label: 'Project Brief', type: 'textarea' },
];
const text = (values: Record<string, string>) => messageText(fields, (name) => values[name] ?? '');
const address = { email: 'hello@studio.example', subject: 'Project inquiry' };

/** Parses a URL as a mail program does. */
function read(url: string) {
  const [, to, query] = /^mailto:([^?]*)\?(.*)$/.exec(url) ?? [];
  const headers = (query ?? '').split('&').map((pair) => pair.split('=').map(decodeURIComponent));
  return { to: decodeURIComponent(to ?? ''), ...Object.fromEntries(headers) };
}

test('each field is a line, choices by label, empty fields left out', () => {
  assert.equal(text({ name: 'Ann', budget: '25-75k' }), 'Your Name: Ann\nBudget Range: $25k–$75k');
});

test('several lines begin below their label and stay as they are', () => {
  assert.equal(text({ brief: '  one\r\n\r\ntwo ' }), 'Project Brief:\n  one\n\ntwo ');
});

test('fields with only white space are left out', () => {
  assert.equal(text({ name: ' ', brief: '\n' }), '');
});

test('every character is preserved in the URL', () => {
  const body = 'Größe "M" & 50% + #1 = ? 😀 <a>\nit\'s (so) *!\t/\\';
  assert.deepEqual(read(mailtoUrl(address, body)), {
    to: 'hello@studio.example',
    subject: 'Project inquiry',
    body: body.replace('\n', '\r\n'),
  });
});

test('a URL has only unreserved characters and escapes', () => {
  const [, query] = mailtoUrl({ ...address, subject: "it's (so) *!" }, 'a b\nc').split('?');
  assert.equal(query, 'subject=it%27s%20%28so%29%20%2A%21&body=a%20b%0D%0Ac');
});

test('a subject stays one line', () => {
  assert.equal(read(mailtoUrl({ ...address, subject: 'a\r\nBcc: x' })).subject, 'a Bcc: x');
});

test('an address with odd characters is encoded', () => {
  assert.equal(
    mailtoUrl({ email: 'a&b?c@studio.example', subject: 's' }),
    'mailto:a%26b%3Fc@studio.example?subject=s',
  );
});

test('half a surrogate pair does not break the message', () => {
  assert.equal(read(mailtoUrl(address, 'x\uD83Dy')).body, 'x\uFFFDy');
});
