//! Values of YAML with their positions.

use crate::report::TextPosition;

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// The position of its first character.
    pub position: TextPosition,
}

/// The value types of YAML (YAML 1.2, core schema).
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, `~` or an empty value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number. The text is set if the author wrote the number differently from its canonical form, for example `1.10` or `01234`.
    Number(serde_json::Number, Option<Box<String>>),
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in its original order, including duplicate keys.
    Map(Vec<(MapKey, Node)>),
}

/// A key of a mapping and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct MapKey {
    /// The key.
    pub name: String,
    /// The position of the key.
    pub position: TextPosition,
}
