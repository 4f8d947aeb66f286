//! Values that are one word each in a record.

use serde::Serialize;

/// The word that stands in a record for a value without fields: `block_device`.
pub fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
