/** The inquiry as plain text, and as a `mailto:` URL (RFC 6068). Pure. */
import type { Field } from '../../shared/form/schema.ts';

/** The longest URL, in characters, that the mail programs in use take whole. */
export const MAILTO_LIMIT = 1900;

export interface Address {
  email: string;
  subject: string;
}

/**
 * One field a line, `Label: value`, in the order of the form; fields left empty are left out. A value of several
 * lines begins on the line after its label. A choice is given by the words that the visitor chose.
 */
export function messageText(fields: readonly Field[], value: (name: string) => string): string {
  const parts = fields.map((field) => {
    const raw = value(field.name).replace(/\r\n?/g, '\n');
    if (!raw.trim()) return [];
    const answer = field.options?.find((option) => option.value === raw)?.label ?? raw;
    return [answer.includes('\n') ? `${field.label}:\n${answer}` : `${field.label}: ${answer}`];
  });
  return parts.flat().join('\n');
}

/** The URL that opens a new message; without `text`, one to write oneself. */
export function mailtoUrl({ email, subject }: Address, text?: string): string {
  // A header field is a single line: a line break in the subject must not begin another.
  const query = [`subject=${encode(subject.replace(/\s+/g, ' '))}`];
  if (text) query.push(`body=${encode(text.replace(/\r\n?|\n/g, '\r\n'))}`);
  return `mailto:${encode(email).replace('%40', '@')}?${query.join('&')}`;
}

/** Percent-encodes all but the unreserved characters of RFC 3986. */
function encode(text: string): string {
  // Half a surrogate pair, which a cut through an emoji leaves behind, has no encoding.
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\uFFFD')).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
