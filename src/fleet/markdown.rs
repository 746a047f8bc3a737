//! The STATUS table of the sitebuilder protocol, for checkpoints of any format.

use super::{Fleet, Row, RowState, age, cell};
use crate::formats::sitebuilder::STATUS_HEADING;
use crate::redaction::Redaction;

impl Fleet {
    /// The STATUS table: the protocol's columns, and in *Status* behind the checkpoint's own status what
    /// the verdict adds to it, such as `in_progress (late)`. Findings follow under a heading of their own.
    /// What the redaction finds is taken out of it.
    #[must_use]
    pub fn markdown(&self, redaction: Option<&Redaction>) -> String {
        let text_of = |text: &str| cell::markdown(text, redaction);
        let mut text = STATUS_HEADING.to_owned();
        for row in self.rows() {
            let updated = age::age(row.updated_at.as_ref(), self.now());
            let task = row.task.clone().unwrap_or_else(|| match row.state {
                RowState::Missing => "—".to_owned(),
                _ => row.place.to_string(),
            });
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} |\n",
                text_of(row.agent.as_deref().unwrap_or("—")),
                text_of(&task),
                progress(row),
                text_of(&updated),
                text_of(&status(row)),
            ));
        }
        if !self.findings().is_empty() {
            text.push_str("\n## Findings\n\n");
            for finding in self.findings() {
                text.push_str(&format!("- {}\n", text_of(&finding.to_string())));
            }
        }
        text
    }
}

/// Where nobody can tell, nobody has done 0 %.
fn progress(row: &Row) -> String {
    match (&row.state, row.progress.percent) {
        (RowState::NotStarted, _) => "0%".to_owned(),
        (_, Some(percent)) => format!("{percent}%"),
        (RowState::Checkpoint { .. }, None) => "unknown".to_owned(),
        _ => "—".to_owned(),
    }
}

fn status(row: &Row) -> String {
    let result = row.result().replace('_', " ");
    match (&row.status, row.result()) {
        (Some(status), "active" | "finished" | "blocked" | "waiting") => status.clone(),
        (Some(status), _) => format!("{status} ({result})"),
        (None, _) => result,
    }
}
