//! What a type tells and does.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::places::{any_type, places, with_empty, written};
use crate::checkpoint::{
    Checkpoint, ContextUse, Detail, ErrorKind, Limits, Operation, OperationContext, RuleContext,
    StepDone, violations,
};
use crate::json::Document;
use crate::testkit::rule::{Ruling, Stop, ensure};

fn noon(day: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(21_000 + day) + TimeDelta::hours(12)
}

pub(super) fn the_format_has_a_name_and_keeps_its_version<C: Checkpoint>(samples: &[C]) -> Ruling {
    let name = C::FORMAT;
    let is_word =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    ensure!(
        name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && !name.ends_with('-')
            && name.len() <= 64
            && name.chars().all(is_word),
        "{name:?} is no name for a format: lower-case letters, digits and `-`, a letter first"
    );
    let Some(version) = C::latest_version() else {
        return Ok(());
    };
    for mut sample in with_empty(samples)? {
        sample.set_schema_version(version);
        let told = sample.schema_version();
        ensure!(
            told == Some(version),
            "version {version} was set, and the checkpoint says {told:?}"
        );
    }
    Ok(())
}

pub(super) fn a_stamp_is_the_time_of_the_last_change<C: Checkpoint>(samples: &[C]) -> Ruling {
    let mut stamped = with_empty(samples)?;
    stamped.iter_mut().for_each(|sample| sample.stamp(noon(0)));
    // A protocol may have no such time; then nothing ever tells of one.
    if stamped.iter().all(|sample| sample.updated_at().is_none()) {
        return Err(Stop::Skipped(
            "`updated_at` stays `None` after `stamp`: the type tells no time of its last change"
                .into(),
        ));
    }
    for mut sample in with_empty(samples)? {
        for day in [0, 1, 2] {
            sample.stamp(noon(day));
            let told = |of: &C| of.updated_at().and_then(|stamp| stamp.time());
            ensure!(
                told(&sample).is_some_and(|told| told == noon(day)),
                "stamped at {}, the checkpoint says it was changed at {:?}",
                noon(day),
                sample.updated_at()
            );
            let (document, reading) = written(&sample)?;
            ensure!(
                told(&reading.value) == told(&sample),
                "the stamp does not come back from {document}"
            );
        }
    }
    Ok(())
}

pub(super) fn what_is_cut_is_recorded<C: Checkpoint>(samples: &[C]) -> Ruling {
    let tight = Limits {
        partial_work: Some(4),
        rationale: Some(4),
        completed_steps: Some(1),
        total_bytes: Some(64),
        steps_kept_over_size: 0,
        ..Limits::default()
    };
    for sample in with_empty(samples)? {
        let before = texts(&sample)?;
        for (limits, name) in [
            (&tight, "tight limits"),
            (&Limits::unlimited(), "no limits"),
        ] {
            let mut cut = sample.clone();
            let truncation = cut.shrink(limits, None);
            if limits.total_bytes.is_none() {
                ensure!(
                    cut == sample && truncation.dropped.is_empty(),
                    "with {name} {:?} was cut",
                    truncation.dropped
                );
            }
            let after = texts(&cut)?;
            let mut recorded = BTreeMap::new();
            for piece in &truncation.dropped {
                gather(&piece.value, &mut recorded);
            }
            for (text, count) in &before {
                let left = after.get(text).copied().unwrap_or_default();
                let kept = recorded.get(text).copied().unwrap_or_default();
                ensure!(
                    left + kept >= *count,
                    "with {name} {text:?} went and is not in the record of what was cut: {:?}",
                    truncation.dropped
                );
            }
        }
    }
    Ok(())
}

/// Every text of a checkpoint, and how often it has it.
fn texts<C: Checkpoint>(checkpoint: &C) -> Result<BTreeMap<String, usize>, Stop> {
    let value = serde_json::to_value(checkpoint)
        .map_err(|error| Stop::failed(format!("the checkpoint cannot be written: {error}")))?;
    let mut found = BTreeMap::new();
    gather(&value, &mut found);
    Ok(found)
}

fn gather(value: &Value, found: &mut BTreeMap<String, usize>) {
    match value {
        Value::String(text) => *found.entry(text.clone()).or_default() += 1,
        Value::Array(elements) => elements.iter().for_each(|element| gather(element, found)),
        Value::Object(members) => members.values().for_each(|member| gather(member, found)),
        _ => {}
    }
}

pub(super) fn whatever_was_read_can_be_reported<C: Checkpoint>(samples: &[C]) -> Ruling {
    for sample in with_empty(samples)? {
        let (document, _) = written(&sample)?;
        reports::<C>(&document)?;
        for pointer in places(&document) {
            for value in any_type() {
                let mut bent = document.clone();
                bent.set(&pointer, &value)?;
                reports::<C>(&bent)?;
            }
        }
    }
    Ok(())
}

/// Asks for all that is ever asked of a checkpoint.
fn reports<C: Checkpoint>(document: &Document) -> Ruling {
    let reading = document.read::<C>()?;
    let now = noon(0);
    let context = RuleContext::none().with_now(now);
    let of = &reading.value;
    let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _told = (
            of.handoff(),
            of.status(),
            of.pulse(),
            of.progress(now),
            of.session(),
        );
        let _found = violations(document, &reading, &context);
        let _planned = (of.resume_plan(&context), of.progress_report());
        let _shown = of.message_values(&context);
    }));
    if let Err(panic) = asked {
        let why = crate::testkit::conformance::message(&*panic);
        return Err(Stop::failed(format!(
            "{document} is read, and reporting it panics: {why}"
        )));
    }
    let files = of.files();
    let mut once = files.clone();
    once.sort_unstable();
    once.dedup();
    ensure!(
        once.len() == files.len(),
        "a file is told more than once: {files:?}"
    );
    Ok(())
}

/// A list of values of an enum, of which none can be left out: the same names make a `match` of all there are.
macro_rules! of_each {
    ($kind:ident { $($variant:ident { $($field:tt: $value:expr),* $(,)? })+ }) => {{
        let _none_is_left_out = |value: &$kind| match value {
            $($kind::$variant { .. } => ()),+
        };
        vec![$($kind::$variant { $($field: $value),* }),+]
    }};
}

/// Operations of each kind.
fn operations() -> Vec<Operation> {
    let text = || "this".to_owned();
    let mut all = of_each!(Operation {
        StepStart { text: text() }
        StepDone { 0: StepDone::new(text()).with_created(text()) }
        StepAdd { text: text(), before: None }
        StepDrop { text: text(), because: text() }
        StepEdit { text: text(), to: text() }
        StepMove { text: text(), before: text() }
        Decide { text: text(), rationale: None }
        Note { text: text() }
        Block { text: text(), kind: None }
        Detail { 0: Detail::default() }
        Unblock {}
        Heartbeat {}
        Fail { text: text() }
        RateLimit { note: None }
        Context { used: ContextUse::NONE }
        Reassign { to: text() }
        Pause {}
        Complete {}
        Restart { because: text() }
        SubtaskStart { id: text() }
        SubtaskDone { id: text(), files: Vec::new() }
        SubtaskFail { id: text(), because: None }
        SubtaskAdd { id: text() }
        WorkstreamStart { id: text() }
        WorkstreamDone { id: text(), files: Vec::new() }
        WorkstreamFail { id: text(), because: None }
        WorkstreamAdd { id: text() }
        TaskStart { id: text() }
        TaskDone { id: text(), files: Vec::new() }
        TaskFail { id: text(), because: None }
        TaskAdd { id: text() }
        WorkstreamDormant { id: text(), because: text() }
        GatePass { name: text(), phase: None }
        GateFail { name: text(), because: text(), workstream: None, file: None, line: None }
        Waive { issue: text(), because: text() }
        Review {
            verdict: text(),
            p0_count: 0,
            p1_count: 0,
            attempt: 1,
            findings: None,
            because: None,
        }
        Phase { name: text() }
        Stage { name: text() }
        Sync { name: text() }
        Verify { activity: text(), status: text() }
    });
    all.push(Operation::Block {
        text: text(),
        kind: Some(text()),
    });
    all
}

pub(super) fn a_refused_operation_changes_nothing<C: Checkpoint>(samples: &[C]) -> Ruling {
    let context = OperationContext::at(noon(0));
    for sample in with_empty(samples)? {
        for operation in operations() {
            let name = operation.name();
            let mut tried = sample.clone();
            let Err(error) = tried.apply(&operation, &context) else {
                ensure!(
                    C::OPERATIONS.contains(&name),
                    "`{name}` is done, and is not among the format's operations"
                );
                continue;
            };
            ensure!(
                tried == sample,
                "`{name}` was refused ({error}), and changed the checkpoint"
            );
            let is_unsupported = matches!(error.kind(), ErrorKind::Unsupported { .. });
            ensure!(
                is_unsupported != C::OPERATIONS.contains(&name),
                "the format says that it {} `{name}`, and it is refused with: {error}",
                if is_unsupported { "has" } else { "lacks" }
            );
        }
    }
    Ok(())
}
