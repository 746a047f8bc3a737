//! What the protocol says to people.

use super::{BuildCheckpoint, phase};
use crate::checkpoint::ExecutionSpec;

impl BuildCheckpoint {
    /// What the build is called in a sentence.
    pub(super) fn name(&self) -> &str {
        self.id().unwrap_or("the build")
    }

    /// `PRD-009 already complete`.
    #[must_use]
    pub fn already_complete_message(&self) -> String {
        format!("{} already complete", self.name())
    }

    /// The state of a build that goes on, as shown before it does:
    ///
    /// ```text
    /// Resuming PRD-009 from Phase 2
    ///
    /// Completed:
    ///   WS1: Database Layer ✅
    ///
    /// Pending:
    ///   WS2: Service Layer
    /// ```
    ///
    /// Titles come from the plan; without it ids stand alone. Workstreams in progress and dormant ones,
    /// these with their reason, have lists of their own.
    #[must_use]
    pub fn display(&self, spec: Option<&ExecutionSpec>) -> String {
        let mut text = format!("Resuming {}", self.name());
        if let Some(phase) = self.resume_phase(spec) {
            text.push_str(&format!(" from Phase {}", phase::text(phase)));
        }
        let label = |id: &str| workstream_label(id, spec);
        let completed = self.completed_workstreams.iter();
        section(
            &mut text,
            "Completed",
            completed.map(|id| format!("{} ✅", label(id))),
        );
        let begun = self.in_progress_workstreams.iter();
        section(&mut text, "In progress", begun.map(|id| label(id)));
        let pending = self.pending_workstreams.iter().map(String::as_str);
        let pending = self.failed_workstream().into_iter().chain(pending);
        section(&mut text, "Pending", pending.map(label));
        section(
            &mut text,
            "Dormant",
            self.dormant().map(|id| match self.dormant_reason(id) {
                Some(reason) => format!("{} ({reason})", label(id)),
                None => label(id),
            }),
        );
        text
    }
}

/// `WS2: Service Layer`, or the id alone where the plan is not known.
#[must_use]
fn workstream_label(id: &str, spec: Option<&ExecutionSpec>) -> String {
    match spec.and_then(|spec| spec.title(id)) {
        Some(title) if !title.is_empty() => format!("{id}: {title}"),
        _ => id.to_owned(),
    }
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.map(|line| format!("\n  {line}")).collect();
    if !lines.is_empty() {
        text.push_str(&format!("\n\n{title}:{}", lines.concat()));
    }
}
