/** Checks the keywords of a schema of props. */
import { BuildError } from './error.mjs';

/** The keywords that constrain or describe values (JSON Schema 2020-12). */
const KEYWORDS = new Set(
  `additionalProperties allOf anyOf const contains default dependentRequired dependentSchemas description else enum
  examples exclusiveMaximum exclusiveMinimum format if items maxContains maxItems maxLength maxProperties maximum
  minContains minItems minLength minProperties minimum multipleOf not oneOf pattern patternProperties prefixItems
  properties propertyNames required then title type uniqueItems`.split(/\s+/),
);
/** Keywords whose value has schemas by names that the author chooses. */
const NAMED = new Set(['dependentSchemas', 'patternProperties', 'properties']);
/** Keywords whose value is plain data. */
const DATA = new Set(['const', 'default', 'enum', 'examples']);

/** Throws on an unknown keyword. Validators ignore a misspelt keyword, so it would constrain nothing. */
export function checkKeywords(island, schema, place = 'schema') {
  if (Array.isArray(schema)) {
    schema.forEach((inner, index) => {
      checkKeywords(island, inner, `${place}[${index}]`);
    });
  }
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return;
  for (const [keyword, value] of Object.entries(schema)) {
    if (!KEYWORDS.has(keyword)) {
      throw new BuildError(
        `\`islands/${island}/props.ts\`: \`${place}\` has \`${keyword}\`, which is not a valid JSON Schema keyword`,
      );
    }
    if (NAMED.has(keyword)) {
      for (const [name, inner] of Object.entries(value)) checkKeywords(island, inner, `${place}.${name}`);
    } else if (!DATA.has(keyword)) checkKeywords(island, value, `${place}.${keyword}`);
  }
}
