//! How the fields of all formats are read and written.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Number;

/// Reads a list or object: `null` counts as absent.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Writes a whole number without a fraction: `65`, not `65.0`.
#[allow(clippy::ref_option, reason = "serde gives the field by reference")]
pub(super) fn plain<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    number.map(Number::from).serialize(serializer)
}

/// The same for the numbers of a map.
pub(super) fn plain_in_map<S: Serializer>(
    numbers: &BTreeMap<String, Option<f64>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        numbers
            .iter()
            .map(|(name, number)| (name, number.map(Number::from))),
    )
}
