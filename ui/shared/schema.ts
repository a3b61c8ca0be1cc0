/**
 * How an island's `props.ts` describes its props. Used while building only: a component imports types from
 * `props.ts`, never values, so that none of this reaches the browser.
 *
 * The result is plain JSON Schema (2020-12). Every keyword counts: the engine holds props to all of them, and the build
 * refuses one that is not of JSON Schema.
 */
import { Type } from 'typebox';

/** An object with exactly these properties. */
export function shape<P extends Type.TProperties>(properties: P) {
  return Type.Object(properties, { additionalProperties: false });
}

/** A property that may be missing or null: templates pass null for what content leaves out. */
export function optional<T extends Type.TSchema & { type: string; enum?: string[] }>(schema: T) {
  const nullable = { ...schema, type: [schema.type, 'null'] };
  return Type.Optional(
    Type.Unsafe<Type.Static<T> | null>(
      schema.enum ? { ...nullable, enum: [...schema.enum, null] } : nullable,
    ),
  );
}

/** One of these words. */
export function oneOf<const W extends string>(...words: W[]) {
  return { ...Type.Unsafe<W>({}), type: 'string' as const, enum: words };
}

/** Text that visitors read; it cannot be empty. */
export function text(description: string) {
  return Type.String({ minLength: 1, description });
}

/** The words of an island, each by its key. An island has none of its own: the theme gives them all. */
export function words<P extends Type.TProperties>(properties: P) {
  return Type.Object(properties, {
    additionalProperties: false,
    description: 'The words of the island, in the language of the page',
  });
}

const form = Type.String({ minLength: 1 });
const otherForm = Type.Optional(form);
const forms = shape({
  zero: otherForm,
  one: otherForm,
  two: otherForm,
  few: otherForm,
  many: otherForm,
  other: form,
});

/** A word with a number in it: one text, or one for each plural category that its language tells apart. */
export function counted(description: string) {
  return Type.Union([form, forms], { description });
}

/** Such a word. */
export type Counted = Type.Static<ReturnType<typeof counted>>;

/** A plural category of CLDR. */
export type Category = keyof Type.Static<typeof forms>;
