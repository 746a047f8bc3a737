//! The built-in templates of the library.

use serde::Serialize;

use crate::redaction::Redaction;

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        /// The templates for every format, by name.
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

/// Renders a protocol's own message from the template with this name in `templates`.
///
/// The templates are tested with arbitrary values, so one that cannot be rendered is a bug of this library; the error
/// is then returned in place of the message.
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
