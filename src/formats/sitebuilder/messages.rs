//! The protocol's messages, rendered from a checkpoint.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::SitebuilderCheckpoint;
use crate::shown::cell;

/// The templates of the protocol's own messages, by name.
#[cfg(feature = "template")]
pub(crate) const TEMPLATES: &[(&str, &str)] = &[
    (
        "sitebuilder/take-over",
        include_str!("templates/take-over.md"),
    ),
    (
        "sitebuilder/progress",
        include_str!("templates/progress.md"),
    ),
];

/// The head of the table of active checkpoints in `progress/STATUS.md`.
pub const STATUS_HEADING: &str = "\
## Active Checkpoints

| Agent | Task | Progress | Last Update | Status |
|-------|------|----------|-------------|--------|
";

/// The instruction that the library writes itself.
pub(super) fn continue_from(start: &str) -> String {
    format!("Continue from {start}")
}

impl SitebuilderCheckpoint {
    /// The message that an agent posts to its outbox after each checkpoint.
    #[cfg(feature = "template")]
    #[must_use]
    pub fn progress_message(&self) -> String {
        let text = crate::template::message(TEMPLATES, "sitebuilder/progress", &self.values());
        text.trim_end().to_owned()
    }

    /// The values that templates see as `own`.
    pub(super) fn values(&self) -> Value {
        let subtasks: Vec<_> = self
            .subtasks
            .open()
            .map(|item| self.subtasks.name(item))
            .collect();
        serde_json::json!({
            "task": self.task(),
            "percent": percent_text(self.percent()),
            "command": self.dispatch_command(),
            "criteria": self.open_criteria(),
            "subtasks": subtasks,
            "continuation": self.continuation(),
        })
    }

    /// The command with which a supervisor lets an agent of the same type continue.
    #[must_use]
    pub fn dispatch_command(&self) -> String {
        let agent = self.agent.as_deref().unwrap_or("{type}");
        format!("/dispatch-sitebuilder {agent} --resume")
    }

    /// How to continue: the instructions of the previous agent, else the place where it stopped.
    #[must_use]
    pub fn continuation(&self) -> String {
        if let Some(left) = self.resume_instructions.as_ref().filter(|t| !t.is_empty()) {
            return left.clone();
        }
        match self.start_at() {
            Some(start) => continue_from(start),
            None => "All subtasks in the checkpoint are done; check the acceptance criteria and complete the task"
                .to_owned(),
        }
    }

    /// The row of this checkpoint in `progress/STATUS.md`, without a line end.
    #[must_use]
    pub fn status_row(&self, now: DateTime<Utc>) -> String {
        row(
            self.agent.as_deref().unwrap_or("—"),
            self.task(),
            self.percent(),
            &self.age(now),
            self.status.as_ref().map_or("—", |status| status.as_str()),
        )
    }

    /// The row of a task that is planned and has no checkpoint yet.
    #[must_use]
    pub fn planned_row(agent: &str, task_id: &str) -> String {
        row(agent, task_id, Some(0), "—", "not started")
    }

    fn task(&self) -> &str {
        self.task_id.as_deref().unwrap_or("—")
    }

    fn age(&self, now: DateTime<Utc>) -> String {
        let Some(stamp) = &self.updated_at else {
            return "—".to_owned();
        };
        let Some(time) = stamp.time() else {
            return stamp.to_string();
        };
        let age = now.signed_duration_since(time);
        match age.num_minutes() {
            // A stamp ahead of the clock has no age.
            _ if age < -crate::checkpoint::FUTURE_TOLERANCE => stamp.to_string(),
            0 => "just now".to_owned(),
            minutes @ 1..60 => format!("{minutes} min ago"),
            minutes @ 60..1440 => format!("{} h ago", minutes / 60),
            minutes => format!("{} d ago", minutes / 1440),
        }
    }
}

/// The percentage as text; without counts it is unknown, not 0 %.
fn percent_text(percent: Option<u8>) -> String {
    percent.map_or_else(|| "unknown".to_owned(), |percent| format!("{percent}%"))
}

fn row(agent: &str, task: &str, percent: Option<u8>, age: &str, status: &str) -> String {
    format!(
        "| {} | {} | {} | {} | {} |",
        cell(agent),
        cell(task),
        percent_text(percent),
        cell(age),
        cell(status)
    )
}
