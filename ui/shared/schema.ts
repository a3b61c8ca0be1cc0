/**
 * Functions with which an island's `props.ts` describes its props. They are used only by the build: a component
 * imports types from `props.ts`, never values, so the browser gets none of this.
 *
 * The result is plain JSON Schema (2020-12). The engine checks props against every keyword, and the build refuses
 * keywords that JSON Schema does not define.
 */
import { Type } from 'typebox';

/** Describes an object with exactly these properties. */
export function shape<P extends Type.TProperties>(properties: P) {
  return Type.Object(properties, { additionalProperties: false });
}

/** Describes a property that may be missing or null: templates pass null for values that content omits. */
export function optional<T extends Type.TSchema & { type: string; enum?: string[] }>(schema: T) {
  const nullable = { ...schema, type: [schema.type, 'null'] };
  return Type.Optional(
    Type.Unsafe<Type.Static<T> | null>(
      schema.enum ? { ...nullable, enum: [...schema.enum, null] } : nullable,
    ),
  );
}

/** Describes one of these strings. */
export function oneOf<const W extends string>(...words: W[]) {
  return { ...Type.Unsafe<W>({}), type: 'string' as const, enum: words };
}

/** Describes a text for visitors, which cannot be empty. */
export function text(description: string) {
  return Type.String({ minLength: 1, description });
}

/**
 * Describes the UI strings of an island, by key. An island has no UI strings of its own: the theme supplies all of
 * them.
 */
export function words<P extends Type.TProperties>(properties: P) {
  return Type.Object(properties, {
    additionalProperties: false,
    description: 'The UI strings of the island, in the language of the page',
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

/** Describes a text with a number: one text, or one for each plural category of the language. */
export function counted(description: string) {
  return Type.Union([form, forms], { description });
}

/** A text with a number. */
export type Counted = Type.Static<ReturnType<typeof counted>>;

/** A plural category of CLDR. */
export type Category = keyof Type.Static<typeof forms>;
