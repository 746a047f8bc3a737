//! Converts between a build's checkpoint and the hand-off that all formats share.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::error::UNSAID;
use super::states::{self, plain};
use super::{BuildCheckpoint, BuildError, BuildStatus, PresenceClass, Verdict};
use crate::checkpoint::{
    Checkpoint, DecisionItem, DoneItem, Handoff, OpenItem, Status, Timestamp, VerificationItem,
};
use crate::is_blank;

const FIDELITY: &str = "gate_a_fidelity";
const CLASSIFICATION: &str = "gate_b_classification";
const PRESENCE: &str = "gate_b_presence";
const PASSED: &str = "passed";
const PENDING: &str = "pending";

pub(super) fn handoff(build: &BuildCheckpoint) -> Handoff {
    let done = |id: &String| DoneItem {
        files_created: build.files_of(id).map(str::to_owned).collect(),
        ..DoneItem::new(id)
    };
    Handoff {
        task: build.id().map(str::to_owned),
        description: build.prd_title.clone(),
        status: build.status(),
        phase: build.current_phase.map(plain),
        updated_at: build.updated_at().cloned(),
        done: build.completed_workstreams.iter().map(done).collect(),
        in_progress: build
            .in_progress_workstreams
            .iter()
            .map(OpenItem::new)
            .collect(),
        pending: build
            .failed_workstream()
            .into_iter()
            .map(str::to_owned)
            .chain(build.pending_workstreams.iter().cloned())
            .collect(),
        decisions: decisions(build),
        blockers: build.error.iter().map(BuildError::text).collect(),
        files: build.files().into_iter().map(str::to_owned).collect(),
        verification: verification(build),
        instructions: instructions(build),
        ..Handoff::default()
    }
}

fn decisions(build: &BuildCheckpoint) -> Vec<DecisionItem> {
    let mut decisions = Vec::new();
    if let Some(review) = &build.adversarial_review {
        let verdict = review.verdict.as_ref().map_or("none", Verdict::as_str);
        let mut text = format!("Adversarial review: {verdict}");
        for (count, of) in [(review.p0_count, "P0"), (review.p1_count, "P1")] {
            if let Some(count) = count {
                text.push_str(&format!(", {} {of}", plain(count)));
            }
        }
        decisions.push(DecisionItem {
            rationale: review.override_reason.clone(),
            ..DecisionItem::new(text)
        });
    }
    if let Some(waiver) = &build.render_proof_waiver {
        let issue = waiver.issue_id.as_deref().unwrap_or("no issue");
        decisions.push(DecisionItem {
            rationale: waiver.reason.clone(),
            ..DecisionItem::new(format!("Gate B is waived by {issue}"))
        });
    }
    decisions
}

fn verification(build: &BuildCheckpoint) -> Option<VerificationItem> {
    let passed = build
        .gates_passed
        .iter()
        .map(|gate| (gate.clone(), PASSED.to_owned()));
    let pending = build
        .gates_pending
        .iter()
        .map(|gate| (gate.clone(), PENDING.to_owned()));
    let class = build.gate_b_classification.as_ref();
    let proofs = [
        (FIDELITY, build.gate_a_fidelity.as_deref()),
        (CLASSIFICATION, class.map(PresenceClass::as_str)),
        (PRESENCE, build.gate_b_presence.as_deref()),
    ];
    let proofs = proofs
        .into_iter()
        .filter_map(|(gate, value)| Some((gate.to_owned(), value?.to_owned())));
    let results: Vec<_> = passed.chain(pending).chain(proofs).collect();
    (!results.is_empty()).then_some(VerificationItem {
        contract: None,
        results,
    })
}

fn instructions(build: &BuildCheckpoint) -> Vec<String> {
    // While a build continues, its plan gives the next step, so only a complete one has an instruction here.
    let mut all = Vec::new();
    if build.status() == Status::Complete {
        all.push("Update the roadmap (MVP-ROADMAP).".to_owned());
    }
    let dormant = build.dormant().map(|id| match build.dormant_reason(id) {
        Some(reason) => format!("Skip {id}, it is dormant: {reason}"),
        None => format!("Skip {id}, it is dormant"),
    });
    all.extend(dormant);
    for (what, fixes) in [
        ("Fixed", &build.key_fixes),
        ("Fixed for the linter", &build.eslint_fixes),
    ] {
        all.extend(fixes.iter().flatten().map(|fix| {
            let file = fix.file.as_deref().unwrap_or("a file");
            let change = fix.change.as_deref().unwrap_or("changed");
            format!("{what}: {file}: {change}")
        }));
    }
    let cleanup = build.cleanup_done.iter().flatten();
    all.extend(cleanup.map(|text| format!("Tidied up: {text}")));
    if let Some(path) = build
        .adversarial_review
        .as_ref()
        .and_then(|review| review.findings_path.as_deref())
    {
        all.push(format!(
            "The findings of the adversarial review are in {path}"
        ));
    }
    all
}

/// Builds a checkpoint from a hand-off, with the stamps of the first revision. The format has no member for agents,
/// notes, times of work and other decisions, and the status follows from what is left.
pub(super) fn from_handoff(handoff: &Handoff, now: DateTime<Utc>) -> BuildCheckpoint {
    let mut build = BuildCheckpoint {
        prd: handoff.task.clone(),
        prd_title: handoff.description.clone(),
        timestamp: Some(Timestamp::like(handoff.updated_at.as_ref(), now)),
        ..BuildCheckpoint::default()
    };
    let done = handoff.done.iter().map(|item| &item.text);
    build.completed_workstreams = not_yet_in(&build, done);
    let begun = handoff.in_progress.iter().map(|item| &item.text);
    build.in_progress_workstreams = not_yet_in(&build, begun);
    build.pending_workstreams = not_yet_in(&build, handoff.pending.iter());
    for item in &handoff.done {
        let files = item.files_created.iter().chain(&item.files_modified);
        let files = files.map(|file| Value::from(file.as_str()));
        let files: Vec<Value> = files.collect();
        if !files.is_empty() {
            build
                .artifacts
                .insert(item.text.clone(), Value::Array(files));
        }
    }
    for (activity, result) in handoff.verification.iter().flat_map(|shown| &shown.results) {
        match activity.as_str() {
            FIDELITY => build.gate_a_fidelity = Some(result.clone()),
            CLASSIFICATION => {
                build.gate_b_classification = Some(PresenceClass::from(result.as_str()));
            }
            PRESENCE => build.gate_b_presence = Some(result.clone()),
            _ if result == PASSED => build.gates_passed.push(activity.clone()),
            _ => build.gates_pending.push(activity.clone()),
        }
    }
    if !handoff.blockers.is_empty() || handoff.status == Status::Failed {
        let said = handoff.blockers.iter().map(String::as_str);
        let said: Vec<&str> = said.filter(|text| !is_blank(text)).collect();
        let message = if said.is_empty() {
            UNSAID.to_owned()
        } else {
            said.join("; ")
        };
        build.error = Some(BuildError {
            message: Some(message),
            ..BuildError::default()
        });
        build.put_back();
    }
    let status = status_for(&build, &handoff.status);
    build.current_phase = match handoff.phase.as_deref().and_then(states::phase) {
        None if status == BuildStatus::Initialized => Some(0.0),
        phase => phase,
    };
    build.status = Some(status);
    build
}

fn not_yet_in<'t>(build: &BuildCheckpoint, texts: impl Iterator<Item = &'t String>) -> Vec<String> {
    let mut seen: BTreeSet<&str> = build
        .lists()
        .iter()
        .flat_map(|(_, _, list)| *list)
        .map(String::as_str)
        .collect();
    texts.filter(|text| seen.insert(text)).cloned().collect()
}

/// The status that fits what is left, as near to the wanted one as the rules allow.
fn status_for(build: &BuildCheckpoint, wanted: &Status) -> BuildStatus {
    let left = build.open_workstreams().next().is_some() || !build.gates_pending.is_empty();
    let proven = build.fidelity_obstacle().is_none() && build.presence_obstacle().is_none();
    if build.error.is_some() {
        BuildStatus::Failed
    } else if !build.in_progress_workstreams.is_empty() {
        BuildStatus::InProgress
    } else if *wanted == Status::Complete && !left && proven {
        BuildStatus::Complete
    } else if build.completed_workstreams.is_empty() && *wanted == Status::NotStarted {
        BuildStatus::Initialized
    } else {
        BuildStatus::Paused
    }
}
