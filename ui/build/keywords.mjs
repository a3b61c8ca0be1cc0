/** Which words a schema of props may use. */
import { BuildError } from './error.mjs';

/** The keywords that hold values to something or explain them (JSON Schema 2020-12). */
const KEYWORDS = new Set(
  `additionalProperties allOf anyOf const contains default dependentRequired dependentSchemas description else enum
  examples exclusiveMaximum exclusiveMinimum format if items maxContains maxItems maxLength maxProperties maximum
  minContains minItems minLength minProperties minimum multipleOf not oneOf pattern patternProperties prefixItems
  properties propertyNames required then title type uniqueItems`.split(/\s+/),
);
/** Those whose value holds schemas by names of the author's own. */
const NAMED = new Set(['dependentSchemas', 'patternProperties', 'properties']);
/** Those whose value is plain data. */
const DATA = new Set(['const', 'default', 'enum', 'examples']);

/** A misspelt keyword would be passed over by everybody who reads the schema, and hold nothing to anything. */
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
        `\`islands/${island}/props.ts\`: \`${place}\` has the keyword \`${keyword}\`, which is not of JSON Schema`,
      );
    }
    if (NAMED.has(keyword)) {
      for (const [name, inner] of Object.entries(value)) checkKeywords(island, inner, `${place}.${name}`);
    } else if (!DATA.has(keyword)) checkKeywords(island, value, `${place}.${keyword}`);
  }
}
