//! Reads and writes the fields of all formats.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Number;
use crate::json::NUMBER_AS_TEXT;

/// Reads a list or object: `null` counts as absent.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// An id: a text, or a number with all its digits, which agents write as well.
/// [`Inspection::id`](crate::checkpoint::Inspection::id) reports the number as a violation.
struct Id(String);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        deserializer.deserialize_newtype_struct(NUMBER_AS_TEXT, IdVisitor)
    }
}

struct IdVisitor;

impl<'de> Visitor<'de> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Id, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
        Ok(Id(text.to_owned()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
        Ok(Id(number.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Id, E> {
        Ok(Id(number.to_string()))
    }
}

/// Reads an id; `null` counts as absent.
pub(super) fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Id>::deserialize(deserializer)?.map(|id| id.0))
}

/// Reads a list of ids; `null` counts as absent.
pub(super) fn ids_if_any<'de, D>(deserializer: D) -> Result<Option<Vec<String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let ids = Option::<Vec<Id>>::deserialize(deserializer)?;
    Ok(ids.map(|ids| ids.into_iter().map(|id| id.0).collect()))
}

/// Reads a list of ids; `null` counts as empty.
pub(super) fn ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(ids_if_any(deserializer)?.unwrap_or_default())
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

/// Declares an object of a file whose members may each be absent, with its serde attributes and schema. `source` names
/// the document of the protocol that defines the members.
macro_rules! members {
    (
        $(#[$about:meta])*
        $name:ident from $source:ident {
            $( $(#[$member_about:meta])* $member:ident: Option<$value:ty>, )+
        }
    ) => {
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(transform = Shape::new($source).null_is_absent()))]
        #[serde(default)]
        $(#[$about])*
        #[non_exhaustive]
        pub struct $name {
            $(
                #[serde(skip_serializing_if = "Option::is_none")]
                $(#[$member_about])*
                pub $member: Option<$value>,
            )+
        }
    };
}

pub(super) use members;
