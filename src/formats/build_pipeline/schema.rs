//! What the JSON Schema of a build asks beyond the types of its members.

use schemars::Schema;
use serde_json::json;

use super::{BuildStatus, Verdict};
use crate::checkpoint::{all_present, any_present, is, present};

/// A text that says something: it has a character that is no white space by Unicode, spelled out because
/// validators do not agree on what `\S` is.
const SAYS_SOMETHING: &str = "[^\\u0009-\\u000d\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";

/// Names that are read and kept in files that have them.
pub(super) const OTHER_NAMES: &[&str] = &[
    "prd_id",
    "id",
    "skipped_workstreams",
    "created_at",
    "updated_at",
];

/// The stamps of either revision, and what a failed build requires.
pub(super) fn conditions(schema: &mut Schema) {
    let later = ["created_at", "updated_at"];
    schema.insert(
        "allOf".to_owned(),
        json!([
            {"if": any_present(&later), "then": all_present(&later), "else": present("timestamp")},
            {"if": is("status", BuildStatus::Failed.as_str()), "then": present("error")},
        ]),
    );
}

/// Who overrides a verdict says why.
pub(super) fn review_conditions(schema: &mut Schema) {
    schema.insert("if".to_owned(), is("verdict", Verdict::Overridden.as_str()));
    schema.insert(
        "then".to_owned(),
        json!({
            "required": ["override_reason"],
            "properties": {"override_reason": {"type": "string", "pattern": SAYS_SOMETHING}},
        }),
    );
}
