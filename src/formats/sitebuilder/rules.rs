//! The rules of the format, from the sitebuilder protocol.

use super::{Heartbeat, SitebuilderCheckpoint, SubtaskStatus, Subtasks, TaskError, TaskStatus};
use crate::checkpoint::{Inspection, OpenEnum};
use crate::json::{Code, pointer};
use crate::quoted;

impl SitebuilderCheckpoint {
    /// Members that are required.
    pub(super) const REQUIRED: &'static [&'static str] =
        &["checkpoint_id", "agent", "task_id", "status", "updated_at"];
}

pub(super) fn inspect(checkpoint: &SitebuilderCheckpoint, inspection: &mut Inspection<'_>) {
    inspection.require_all(SitebuilderCheckpoint::REQUIRED);
    key(checkpoint, inspection);
    inspection.id("task_id");
    inspection.known("/status", checkpoint.status.as_ref());
    inspection.timestamp("/started_at", checkpoint.started_at.as_ref());
    inspection.timestamp("/updated_at", checkpoint.updated_at.as_ref());
    inspection.timestamp("/completed_at", checkpoint.completed_at.as_ref());
    percent(checkpoint, inspection);
    inspection.within("subtasks", |inspection| {
        subtasks(&checkpoint.subtasks, inspection);
    });
    inspection.each("errors", &checkpoint.errors, error);
    if let Some(beat) = &checkpoint.heartbeat {
        inspection.within("heartbeat", |inspection| heartbeat(beat, inspection));
    }
    match checkpoint.status {
        Some(TaskStatus::Blocked) => blocked(checkpoint, inspection),
        Some(TaskStatus::Complete) => complete(checkpoint, inspection),
        _ => {}
    }
}

fn key(checkpoint: &SitebuilderCheckpoint, inspection: &mut Inspection<'_>) {
    let (agent, task) = (checkpoint.agent.as_deref(), checkpoint.task_id.as_deref());
    if let (Some(key), Some(agent), Some(task)) = (inspection.context().key, agent, task) {
        let expected = format!("{agent}-{task}");
        if key.as_str() != expected {
            let of_agent = key
                .as_str()
                .strip_prefix(agent)
                .is_some_and(|rest| rest.starts_with('-'));
            let member = if of_agent { "/task_id" } else { "/agent" };
            inspection.report(
                member,
                Code::KEY_MISMATCH,
                format!(
                    "the checkpoint of {expected} is kept under {key}",
                    expected = quoted(expected.as_str()),
                    key = quoted(key.as_str())
                ),
            );
        }
    }
}

fn percent(checkpoint: &SitebuilderCheckpoint, inspection: &mut Inspection<'_>) {
    let Some(percent) = checkpoint.progress_percent else {
        return;
    };
    if !(0.0..=100.0).contains(&percent) {
        inspection.report(
            "/progress_percent",
            Code::OUT_OF_RANGE,
            format!("{percent} is not within 0 to 100"),
        );
        return;
    }
    // The protocol rounds up or down, so a difference of 1 is allowed.
    if let Some(exact) = checkpoint.subtasks.percent()
        && (percent - exact).abs() > 1.0 + 1e-9
    {
        inspection.report(
            "/progress_percent",
            Code::COUNT_MISMATCH,
            format!("{percent}, but the subtasks make {exact:.1}"),
        );
    }
}

fn subtasks(subtasks: &Subtasks, inspection: &mut Inspection<'_>) {
    for (member, count) in [
        ("/total", subtasks.total),
        ("/completed", subtasks.completed),
        ("/failed", subtasks.failed),
    ] {
        not_negative(member, count, inspection);
    }
    inspection.each("items", &subtasks.items, |item, inspection| {
        inspection.id("id");
        inspection.known("/status", item.status.as_ref());
    });
    let ids = subtasks.items.iter().map(|item| item.id.as_deref());
    inspection.each_once("items", ids, "/id");
    // The counts cover all subtasks, the list maybe only some.
    if !subtasks.lists_all() || !inspection.is_whole("/items") {
        return;
    }
    let listed = super::progress::count(subtasks.items.iter());
    if let Some(total) = subtasks.total.filter(|total| *total < listed) {
        let message = format!("{total}, but {listed} subtasks are listed");
        inspection.report("/total", Code::COUNT_MISMATCH, message);
    }
    // A status in another spelling may mean any state.
    let plain = |item: &super::Subtask| item.status.as_ref().is_some_and(OpenEnum::is_known);
    if !subtasks.items.iter().all(plain) {
        return;
    }
    for (member, count, status) in [
        ("/completed", subtasks.completed, SubtaskStatus::Complete),
        ("/failed", subtasks.failed, SubtaskStatus::Failed),
    ] {
        let listed = subtasks.listed(&status);
        if let Some(count) = count.filter(|count| *count != listed) {
            inspection.report(
                member,
                Code::COUNT_MISMATCH,
                format!("{count}, but {listed} of the subtasks listed are {status}"),
            );
        }
    }
}

fn not_negative(member: &str, number: Option<f64>, inspection: &mut Inspection<'_>) {
    if let Some(number) = number.filter(|number| *number < 0.0) {
        let message = format!("{number} is less than 0");
        inspection.report(member, Code::OUT_OF_RANGE, message);
    }
}

fn error(error: &TaskError, inspection: &mut Inspection<'_>) {
    inspection.timestamp("/timestamp", error.timestamp.as_ref());
}

fn heartbeat(heartbeat: &Heartbeat, inspection: &mut Inspection<'_>) {
    inspection.timestamp("/last_beat", heartbeat.last_beat.as_ref());
    not_negative("/interval_seconds", heartbeat.interval_seconds, inspection);
}

fn blocked(checkpoint: &SitebuilderCheckpoint, inspection: &mut Inspection<'_>) {
    if checkpoint.errors.is_empty() && inspection.is_whole("/errors") {
        inspection.report(
            "/errors",
            Code::STATUS_RULE,
            "the task is blocked, but no error says by what",
        );
    }
}

fn complete(checkpoint: &SitebuilderCheckpoint, inspection: &mut Inspection<'_>) {
    if checkpoint.completed_at.is_none() {
        inspection.report(
            "/completed_at",
            Code::STATUS_RULE,
            "the task is complete, but has no completion time",
        );
    }
    for criterion in checkpoint.open_criteria() {
        inspection.report(
            &pointer::join("/acceptance_criteria_met", criterion),
            Code::STATUS_RULE,
            "the task is complete, but this criterion is not met",
        );
    }
}
