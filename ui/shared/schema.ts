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

/** The words of an island that content may replace: every one optional, the ones given here by default. */
export function words<D extends Record<string, string>>(defaults: D) {
  const properties = Object.entries(defaults).map(([key, value]) => [
    key,
    optional(text(`By default: ${value}`)),
  ]);
  return {
    ...Type.Unsafe<{ [K in keyof D]?: string | null }>(shape(Object.fromEntries(properties))),
    type: 'object' as const,
  };
}
