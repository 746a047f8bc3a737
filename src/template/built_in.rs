//! The templates that come with the library.

use serde::Serialize;

use crate::redaction::Redaction;

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        /// Each by its name. `FORMAT/NAME` stands in for `NAME` for checkpoints of that format.
        pub(crate) const BUILT_IN: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../resume/templates/", $name, ".md")))),+
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
    "agent-session/resumed",
    "agent-session/take-over",
    "agent-session/handoff-note",
    "agent-session/fresh-handoff",
    "agent-session/status-check",
    "agent-session/escalation",
    "agent-session/update-guide",
    "agent-session/transition-guide",
    "sitebuilder/take-over",
    "sitebuilder/progress",
    "story-pipeline/block",
    "story-pipeline/take-over",
];

/// The built-in template of this name.
pub(crate) fn source(name: &str) -> Option<&'static str> {
    let found = BUILT_IN.iter().find(|(known, _)| *known == name);
    found.map(|(_, source)| *source)
}

/// A protocol's own message, from its built-in template.
///
/// The templates are tested with any values, so one that does not render is a fault of this library; it is told
/// where the message would stand.
pub(crate) fn message(name: &str, own: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Values<'o, O> {
        own: &'o O,
        given: std::collections::BTreeMap<String, serde_json::Value>,
    }
    let given = std::collections::BTreeMap::new();
    let source = source(name).unwrap_or_default();
    super::render(
        name,
        source,
        &Values { own, given },
        Some(&Redaction::secrets()),
    )
    .unwrap_or_else(|error| error.to_string())
}
