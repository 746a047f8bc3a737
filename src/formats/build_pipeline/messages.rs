//! What the protocol says to people.

use super::ExecutionSpec;
use super::{BuildCheckpoint, phase};

impl BuildCheckpoint {
    /// What the build is called in a sentence.
    pub(super) fn name(&self) -> &str {
        self.id().unwrap_or("the build")
    }

    /// `PRD-009 already complete`.
    #[must_use]
    pub fn already_complete_message(&self) -> String {
        match self.id() {
            Some(id) => format!("{id} already complete"),
            None => "The build is already complete".to_owned(),
        }
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
        let mut text = self.heading(spec);
        for (title, lines) in self.sections(spec) {
            text.push_str(&format!("\n\n{title}:"));
            for line in lines {
                text.push_str(&format!("\n  {line}"));
            }
        }
        text
    }

    /// `Resuming PRD-009 from Phase 2`.
    pub(super) fn heading(&self, spec: Option<&ExecutionSpec>) -> String {
        let phase = self.resume_phase(spec);
        let phase = phase.map(|phase| format!(" from Phase {}", phase::text(phase)));
        format!("Resuming {}{}", self.name(), phase.unwrap_or_default())
    }

    /// The lists of the display that have something in them, each under its title.
    pub(super) fn sections(
        &self,
        spec: Option<&ExecutionSpec>,
    ) -> impl Iterator<Item = (&'static str, Vec<String>)> {
        let label = |id: &str| workstream_label(id, spec);
        let completed = self.completed_workstreams.iter();
        let begun = self.in_progress_workstreams.iter();
        let pending = self.pending_workstreams.iter().map(String::as_str);
        let pending = self.failed_workstream().into_iter().chain(pending);
        let dormant = self.dormant().map(|id| match self.dormant_reason(id) {
            Some(reason) => format!("{} ({reason})", label(id)),
            None => label(id),
        });
        let sections = [
            (
                "Completed",
                completed
                    .map(|id| format!("{} ✅", label(id)))
                    .collect::<Vec<_>>(),
            ),
            ("In progress", begun.map(|id| label(id)).collect()),
            ("Pending", pending.map(label).collect()),
            ("Dormant", dormant.collect()),
        ];
        sections.into_iter().filter(|(_, lines)| !lines.is_empty())
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
