//! Defines the texts that each `format` of the JSON Schemas accepts. No other module does.

mod app_facts;
mod check;
pub mod link;
pub mod old_path;
mod reserved_path;
pub mod values;

pub use check::{check_format, check_value};
pub(crate) use reserved_path::{RESERVED_PATH_HINT, reserved_message};
use schemars::JsonSchema;
use serde_json::Value as Json;

use crate::schema::Schema;

/// Returns the JSON Schema of a type, such as a manifest or front matter.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Json {
    schemars::schema_for!(T).to_value()
}

/// Returns the compiled schema of a type.
#[must_use]
pub(crate) fn checked_by<T: JsonSchema>() -> Schema {
    Schema::new(schema_of::<T>(), check_format)
        .unwrap_or_else(|error| unreachable!("schemas of types are valid: {error}"))
}
