//! The templates that come with the library.

use serde::Serialize;

use crate::redaction::Redaction;

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        /// Those for every format, each by its name.
        pub(crate) const BUILT_IN: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("templates/", $name, ".md")))),+
        ];
    };
}

built_in![
    "resume",
    "block",
    "header",
    "take-over",
    "status-check",
    "escalation",
    "progress",
];

/// A protocol's own message, from the template of this name among `templates`.
///
/// The templates are tested with any values, so one that does not render is a fault of this library; it is reported
/// where the message would stand.
pub(crate) fn message(
    templates: &[(&str, &'static str)],
    name: &str,
    own: &impl Serialize,
) -> String {
    #[derive(Serialize)]
    struct Values<'o, O> {
        own: &'o O,
        given: std::collections::BTreeMap<String, serde_json::Value>,
    }
    let given = std::collections::BTreeMap::new();
    let mut templates = templates.iter();
    let source = templates.find(|(known, _)| *known == name);
    let source = source.map_or("", |(_, source)| source);
    super::render(
        name,
        super::Source::BuiltIn(source),
        &Values { own, given },
        Some(&Redaction::secrets()),
    )
    .unwrap_or_else(|error| error.to_string())
}
