//! The rules of the format.

use crate::{is_blank, quoted};
use std::collections::{BTreeMap, BTreeSet};

use super::gates::{gate_name, is_fidelity, is_presence};
use super::layout::is_build_id;
use super::spec::ExecutionSpec;
use super::{AdversarialReview, BuildCheckpoint, BuildStatus, MOST_ATTEMPTS, Verdict, error};
use crate::checkpoint::Inspection;
#[cfg(feature = "schema")]
use crate::checkpoint::{all_present, any_present, is, present};
use crate::json::{Code, pointer};

impl BuildCheckpoint {
    /// Members that are required.
    pub(super) const REQUIRED: &'static [&'static str] = &["prd", "status"];
}

pub(super) fn inspect(build: &BuildCheckpoint, inspection: &mut Inspection<'_>) {
    inspection.require_all(BuildCheckpoint::REQUIRED);
    identity(build, inspection);
    at_least(inspection, "/current_phase", build.current_phase, 0.0);
    inspection.known("/status", build.status.as_ref());
    buckets(build, inspection);
    artifacts(build, inspection);
    stamps(build, inspection);
    if let Some(found) = &build.error {
        error::inspect(found, inspection);
    }
    status_rules(build, inspection);
    if let Some(made) = &build.adversarial_review {
        inspection.within("adversarial_review", |inspection| review(made, inspection));
    }
    proofs(build, inspection);
    if let Some(spec) = inspection.context().input::<ExecutionSpec>() {
        all_of_plan(build, spec, inspection);
    }
}

fn identity(build: &BuildCheckpoint, inspection: &mut Inspection<'_>) {
    let Some(id) = &build.prd else {
        return;
    };
    if !is_build_id(id) {
        let message = format!(
            "{id} is not an id of this format: PRD- and three digits, or EXEC-, ADR-, FIB-, GAP-, PERF- or \
             ISS- and letters, digits, `.`, `_` and `-`",
            id = quoted(id)
        );
        inspection.report("/prd", Code::BAD_ID, message);
    }
    if let Some(key) = inspection
        .context()
        .key
        .filter(|key| key.as_str() != id.as_str())
    {
        let message = format!(
            "the checkpoint of {id} is kept under {}",
            quoted(key.as_str()),
            id = quoted(id)
        );
        inspection.report("/prd", Code::KEY_MISMATCH, message);
    }
}

fn at_least(inspection: &mut Inspection<'_>, member: &str, number: Option<f64>, least: f64) {
    if let Some(number) = number.filter(|number| *number < least) {
        let message = format!("{number} is less than {least}");
        inspection.report(member, Code::OUT_OF_RANGE, message);
    }
}

/// A workstream is listed in one bucket, once. The dormant bucket has two names; a workstream listed under both is
/// listed twice.
fn buckets(build: &BuildCheckpoint, inspection: &mut Inspection<'_>) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (_, name, list) in build.lists() {
        inspection.numbers(name);
        for (index, id) in list.iter().enumerate() {
            let first = *seen.entry(id).or_insert(name);
            let is_first =
                first == name && list.iter().position(|other| other == id) == Some(index);
            if !is_first {
                let message = format!("{id} is also in {first}");
                inspection.report(&format!("/{name}/{index}"), Code::NOT_DISJOINT, message);
            }
        }
    }
}

fn artifacts(build: &BuildCheckpoint, inspection: &mut Inspection<'_>) {
    let holders = [
        "/completed_workstreams",
        "/dormant_workstreams",
        "/skipped_workstreams",
    ];
    if !holders.iter().all(|list| inspection.is_whole(list)) {
        return;
    }
    let completed = build.completed_workstreams.iter().map(String::as_str);
    let holders: BTreeSet<&str> = completed.chain(build.dormant()).collect();
    for (id, artifact) in &build.artifacts {
        // `null` counts as absent.
        if !artifact.is_null() && !holders.contains(id.as_str()) {
            let member = pointer::join("/artifacts", id);
            let message = format!("{id} is neither completed nor dormant");
            inspection.report(&member, Code::NOT_SUBSET, message);
        }
    }
}

fn stamps(build: &BuildCheckpoint, inspection: &mut Inspection<'_>) {
    let later = inspection.is_present("created_at") || inspection.is_present("updated_at");
    if later {
        inspection.require("created_at");
        inspection.require("updated_at");
    } else {
        inspection.require("timestamp");
    }
    inspection.timestamp("/timestamp", build.timestamp.as_ref());
    inspection.timestamp("/created_at", build.created_at.as_ref());
    inspection.timestamp("/updated_at", build.updated_at.as_ref());
    let time = |stamp: &Option<crate::Timestamp>| stamp.as_ref().and_then(crate::Timestamp::time);
    if let (Some(created), Some(updated)) = (time(&build.created_at), time(&build.updated_at))
        && updated < created
    {
        let message = "updated_at is before created_at";
        inspection.report("/updated_at", Code::OUT_OF_ORDER, message);
    }
}

fn status_rules(build: &BuildCheckpoint, inspection: &mut Inspection<'_>) {
    let Some(status) = &build.status else {
        return;
    };
    let begun = !build.in_progress_workstreams.is_empty();
    // No rules are known for an unlisted status.
    if matches!(status, BuildStatus::Other(_)) {
        return;
    }
    let member = "/in_progress_workstreams";
    if *status != BuildStatus::InProgress && begun {
        let message = format!("a build that is {status} must have no workstream in progress");
        inspection.report(member, Code::STATUS_RULE, message);
    }
    if *status == BuildStatus::InProgress && !begun && inspection.is_whole(member) {
        let message = "a build in progress must have a workstream in progress";
        inspection.report(member, Code::STATUS_RULE, message);
    }
    if *status == BuildStatus::Failed {
        inspection.require("error");
        if build
            .error
            .as_ref()
            .is_some_and(|error| !error.says_something())
        {
            let message = "a failed build must say what failed, but this error has no text";
            inspection.report("/error", Code::STATUS_RULE, message);
        }
    } else if inspection.is_present("error") {
        let message = format!("a build that is {status} must have no error");
        inspection.report("/error", Code::STATUS_RULE, message);
    }
    if *status == BuildStatus::Complete {
        complete(build, inspection);
    }
}

fn complete(build: &BuildCheckpoint, inspection: &mut Inspection<'_>) {
    for (member, list) in [
        ("/pending_workstreams", &build.pending_workstreams),
        ("/gates_pending", &build.gates_pending),
    ] {
        if !list.is_empty() {
            let message = format!(
                "a complete build must have nothing pending: {}",
                list.join(", ")
            );
            inspection.report(member, Code::STATUS_RULE, message);
        }
    }
    if let Some(obstacle) = build.fidelity_obstacle() {
        inspection.report(obstacle.pointer, Code::STATUS_RULE, obstacle.message);
    }
    // If the waiver is not fully readable, its unreadable part may be the issue.
    if let Some(obstacle) = build.presence_obstacle()
        && (inspection.is_whole("/render_proof_waiver") || build.is_stack_down())
    {
        inspection.report(obstacle.pointer, Code::STATUS_RULE, obstacle.message);
    }
}

fn review(review: &AdversarialReview, inspection: &mut Inspection<'_>) {
    inspection.known("/verdict", review.verdict.as_ref());
    at_least(inspection, "/p0_count", review.p0_count, 0.0);
    at_least(inspection, "/p1_count", review.p1_count, 0.0);
    // Attempts count from 1; files have 0 where no review was needed.
    at_least(inspection, "/attempt", review.attempt, 0.0);
    if let Some(attempt) = review.attempt.filter(|attempt| *attempt > MOST_ATTEMPTS) {
        let message = format!("attempt {attempt}; there are at most {MOST_ATTEMPTS}");
        inspection.report("/attempt", Code::OUT_OF_RANGE, message);
    }
    let is_overridden = review.verdict == Some(Verdict::Overridden);
    if is_overridden
        && inspection.require("override_reason")
        && review.override_reason.as_deref().is_some_and(is_blank)
    {
        let message = "override_reason is empty";
        inspection.report("/override_reason", Code::STATUS_RULE, message);
    }
}

/// The values of gates A and B.
fn proofs(build: &BuildCheckpoint, inspection: &mut Inspection<'_>) {
    let mut unknown = |member: &str, text: Option<&str>, known: bool, texts: &str| {
        if let Some(text) = text.filter(|_| !known) {
            let message = format!("{text} is none of {texts}", text = quoted(text));
            inspection.report(member, Code::UNKNOWN_VALUE, message);
        }
    };
    let text = build.gate_a_fidelity.as_deref();
    let known = text.is_some_and(is_fidelity);
    unknown("/gate_a_fidelity", text, known, "pass, fail:N");
    let text = build.gate_b_presence.as_deref();
    let known = text.is_some_and(is_presence);
    let texts = "pass, fail:…, blocked:…, waived:ISSUE, not_applicable";
    unknown("/gate_b_presence", text, known, texts);
    inspection.known(
        "/gate_b_classification",
        build.gate_b_classification.as_ref(),
    );
}

/// The buckets together hold the workstreams of the plan, and the two lists of gates the gates of the plan. Gates are
/// compared without the workstream that they were passed for.
fn all_of_plan(build: &BuildCheckpoint, spec: &ExecutionSpec, inspection: &mut Inspection<'_>) {
    let buckets = build.lists().map(|(_, name, list)| (name, list));
    let planned = spec.workstreams().map(|item| item.id.as_str()).collect();
    let missing = ("pending_workstreams", "in no list of workstreams");
    all_of(
        &buckets,
        planned,
        |id| id,
        "workstream",
        missing,
        inspection,
    );
    let gates = [
        ("gates_passed", build.gates_passed.as_slice()),
        ("gates_pending", build.gates_pending.as_slice()),
    ];
    let planned = spec.gates.iter().map(|gate| gate_name(gate)).collect();
    let missing = ("gates_pending", "neither pending nor passed");
    all_of(&gates, planned, gate_name, "gate", missing, inspection);
}

fn all_of(
    lists: &[(&str, &[String])],
    planned: BTreeSet<&str>,
    name_of: fn(&str) -> &str,
    what: &str,
    (missing_at, is): (&str, &str),
    inspection: &mut Inspection<'_>,
) {
    let mut missing = planned.clone();
    let mut whole = true;
    for (list, items) in lists {
        whole &= inspection.is_whole(&format!("/{list}"));
        for (index, item) in items.iter().enumerate() {
            missing.remove(name_of(item));
            if !planned.contains(name_of(item)) {
                let message = format!("{item} is not a {what} of the execution spec");
                inspection.report(&format!("/{list}/{index}"), Code::NOT_SUBSET, message);
            }
        }
    }
    // An unreadable item may be the missing one.
    for item in missing.into_iter().filter(|_| whole) {
        let message = format!("{item} of the execution spec is {is}");
        inspection.report(&format!("/{missing_at}"), Code::NOT_SUBSET, message);
    }
}

/// The stamps of either revision, and the error that a failed build requires.
#[cfg(feature = "schema")]
pub(super) fn conditions(schema: &mut schemars::Schema) {
    let later = ["created_at", "updated_at"];
    schema.insert(
        "allOf".to_owned(),
        serde_json::json!([
            {"if": any_present(&later), "then": all_present(&later), "else": present("timestamp")},
            {"if": is("status", BuildStatus::Failed.as_str()), "then": present("error")},
        ]),
    );
}

/// An overridden verdict requires a reason.
#[cfg(feature = "schema")]
pub(super) fn review_conditions(schema: &mut schemars::Schema) {
    schema.insert("if".to_owned(), is("verdict", Verdict::Overridden.as_str()));
    schema.insert("then".to_owned(), present("override_reason"));
}
