/** The inquiry as plain text, and as a `mailto:` URL (RFC 6068). Pure. */
import type { Field } from '../../shared/form/schema.ts';

/** Maximum length of a URL that common mail programs accept completely, in characters. */
export const MAILTO_LIMIT = 1900;

export interface Address {
  email: string;
  subject: string;
}

/**
 * Returns one line per field, `Label: value`, in the order of the form. Empty fields are left out. A value of
 * several lines begins on the line after its label. A choice is given by its visible label.
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

/** Returns the URL that opens a new message. Without `text` the message is empty. */
export function mailtoUrl({ email, subject }: Address, text?: string): string {
  // A header field is a single line: a line break in the subject must not begin another field.
  const query = [`subject=${encode(subject.replace(/\s+/g, ' '))}`];
  if (text) query.push(`body=${encode(text.replace(/\r\n?|\n/g, '\r\n'))}`);
  return `mailto:${encode(email).replace('%40', '@')}?${query.join('&')}`;
}

/** Percent-encodes all but the unreserved characters of RFC 3986. */
function encode(text: string): string {
  // An unpaired surrogate, as a cut through an emoji leaves behind, cannot be encoded.
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\uFFFD')).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
