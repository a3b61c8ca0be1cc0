//! References within a schema (JSON Schema 2020-12, core, section 8.2.3).

use serde_json::Value as Json;

/// Follows references to the schema that applies. A cycle of references ends at one of its members, which has no keys.
#[must_use]
pub fn referred<'s>(root: &'s Json, schema: &'s Json) -> &'s Json {
    const MAX_REFERENCES: usize = 16;
    let target = |schema: &&'s Json| {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        root.pointer(pointer)
    };
    let mut schemas = std::iter::successors(Some(schema), target).take(MAX_REFERENCES);
    schemas.by_ref().last().unwrap_or(schema)
}
