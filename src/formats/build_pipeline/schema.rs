//! What the JSON Schema of a build asks beyond the types of its members.

use schemars::Schema;
use serde_json::json;

use super::{BuildStatus, Verdict};
use crate::checkpoint::{all_present, any_present, is, present};

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

/// Overriding a verdict needs a reason.
pub(super) fn review_conditions(schema: &mut Schema) {
    schema.insert("if".to_owned(), is("verdict", Verdict::Overridden.as_str()));
    schema.insert("then".to_owned(), present("override_reason"));
}
