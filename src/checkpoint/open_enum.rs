//! Enums that preserve unknown values.

/// An enum that can also hold a text that the format does not list; the enums of the library's formats implement it.
#[doc(hidden)]
pub trait OpenEnum: sealed::Sealed {
    /// The texts that the format lists.
    const KNOWN: &'static [&'static str];

    /// The text as in the file.
    fn as_str(&self) -> &str;

    /// Whether the format lists the text.
    fn is_known(&self) -> bool {
        Self::KNOWN.contains(&self.as_str())
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Declares an enum with the given texts and `Other`, and implements serde and the schema.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $text:literal ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
            /// A text that the format does not list. It is preserved and reported.
            Other(String),
        }

        impl $name {
            /// The text as in the file.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $( $name::$variant => $text, )+
                    $name::Other(text) => text,
                }
            }
        }

        impl $crate::checkpoint::sealed_enum::Sealed for $name {}

        impl $crate::formats::OpenEnum for $name {
            const KNOWN: &'static [&'static str] = &[$($text),+];

            fn as_str(&self) -> &str {
                $name::as_str(self)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $( $text => $name::$variant, )+
                    other => $name::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                Ok($name::from(text.as_str()))
            }
        }

        #[cfg(feature = "proptest")]
        $crate::checkpoint::arbitrary! {
            /// Each text that the format lists, equally often, and no other. For other texts see
            /// [`any_spelling`](crate::strategies::any_spelling).
            $name => proptest::strategy::Strategy::prop_map(
                proptest::sample::select(<$name as $crate::checkpoint::OpenEnum>::KNOWN),
                <$name>::from,
            );
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "enum": [$($text),+],
                })
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}

pub(crate) use open_enum;
