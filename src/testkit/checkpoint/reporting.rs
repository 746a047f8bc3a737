//! The rules for what a type reports and for its operations.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::{read, with_empty, with_other_types, written};
use crate::checkpoint::{
    Checkpoint, ContextUse, Detail, ErrorKind, Limits, Operation, OperationContext, RuleContext,
    StepDone, violations,
};
use crate::json::Document;
use crate::testkit::Skipped;

fn noon(day: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(21_000 + day) + TimeDelta::hours(12)
}

/// The name of the format consists of lower-case letters, digits and `-`. After a version is set, the checkpoint has
/// that version.
pub fn the_format_has_a_name_and_keeps_its_version<C: Checkpoint>(samples: &[C]) {
    let name = C::FORMAT;
    let is_allowed =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    assert!(
        name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && !name.ends_with('-')
            && name.len() <= 64
            && name.chars().all(is_allowed),
        "{name:?} is no name of a format: use lower-case letters, digits and `-`, a letter first"
    );
    let Some(version) = C::latest_version() else {
        return;
    };
    for mut sample in with_empty(samples) {
        sample.set_schema_version(version);
        let found = sample.schema_version();
        assert_eq!(found, Some(version), "the version after it was set");
    }
}

/// A stamp sets the time of the last change, reads back, and changes with each later stamp. Skipped for a type without
/// such a time.
pub fn a_stamp_is_the_time_of_the_last_change<C: Checkpoint>(samples: &[C]) -> Result<(), Skipped> {
    let changed = |sample: &C| sample.updated_at().and_then(|stamp| stamp.time());
    let has_no_time = |mut sample: C| {
        sample.stamp(noon(0));
        sample.updated_at().is_none()
    };
    if with_empty(samples).into_iter().all(has_no_time) {
        return Err(Skipped("the type records no time of its last change"));
    }
    for mut sample in with_empty(samples) {
        for day in [0, 1, 2] {
            sample.stamp(noon(day));
            let found = changed(&sample);
            assert!(
                found.is_some_and(|found| found == noon(day)),
                "the time of the last change after a stamp with {} is {found:?}",
                noon(day)
            );
            let document = written(&sample);
            let back = changed(&read::<C>(&document).value);
            assert!(back == found, "the stamp is not read again from {document}");
        }
    }
    Ok(())
}

/// Every text that limits remove from a checkpoint is in the dropped items, uncut.
pub fn dropped_text_is_recorded<C: Checkpoint>(samples: &[C]) {
    let tight = Limits {
        partial_work: Some(4),
        rationale: Some(4),
        completed_steps: Some(1),
        total_bytes: Some(64),
        steps_kept_over_size: 0,
        ..Limits::default()
    };
    for sample in with_empty(samples) {
        let before = texts(&serde_json::to_value(&sample).unwrap());
        let mut unlimited = sample.clone();
        let dropped = unlimited.shrink(&Limits::unlimited(), None).dropped;
        assert!(
            unlimited == sample && dropped.is_empty(),
            "without limits {dropped:?} was dropped"
        );
        let mut limited = sample.clone();
        let dropped = limited.shrink(&tight, None).dropped;
        let mut found = texts(&serde_json::to_value(&limited).unwrap());
        for item in &dropped {
            gather(&item.value, &mut found);
        }
        for (text, count) in before {
            let found = found.get(&text).copied().unwrap_or_default();
            assert!(
                found >= count,
                "{text:?} was removed, and is not in the dropped items: {dropped:?}"
            );
        }
    }
}

/// The texts in a value, with how often each occurs.
fn texts(value: &Value) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    gather(value, &mut found);
    found
}

fn gather(value: &Value, found: &mut BTreeMap<String, usize>) {
    match value {
        Value::String(text) => *found.entry(text.clone()).or_default() += 1,
        Value::Array(elements) => elements.iter().for_each(|element| gather(element, found)),
        Value::Object(members) => members.values().for_each(|member| gather(member, found)),
        _ => {}
    }
}

/// The hand-off, status, files, violations, plan and messages of every reading can be computed without a panic, and
/// each file is named once.
pub fn every_reading_can_be_reported<C: Checkpoint>(samples: &[C]) {
    for sample in with_empty(samples) {
        let document = written(&sample);
        reports::<C>(&document);
        for (_, _, changed) in with_other_types(&document) {
            reports::<C>(&changed);
        }
    }
}

#[track_caller]
fn reports<C: Checkpoint>(document: &Document) {
    let reading = read::<C>(document);
    let now = noon(0);
    let context = RuleContext::none().with_now(now);
    let of = &reading.value;
    let asked = catch_unwind(AssertUnwindSafe(|| {
        let handoff = of.handoff();
        let _ = (of.status(), of.pulse(), of.progress(&handoff, now));
        let _ = (of.session(), violations(document, &reading, &context));
        let _ = (of.resume_plan(&context), of.progress_report());
        let _ = of.message_values(&context);
    }));
    assert!(asked.is_ok(), "a report on {document} panics");
    let mut files = of.files();
    files.sort_unstable();
    let named = files.len();
    files.dedup();
    assert_eq!(
        files.len(),
        named,
        "a file is named more than once: {files:?}"
    );
}

/// A list with one value of an enum for each variant. The names also make a `match`, so that the compiler reports a
/// missing variant.
macro_rules! of_each {
    ($kind:ident { $($variant:ident { $($field:tt: $value:expr),* $(,)? })+ }) => {{
        let _none_is_left_out = |value: &$kind| match value {
            $($kind::$variant { .. } => ()),+
        };
        vec![$($kind::$variant { $($field: $value),* }),+]
    }};
}

/// At least one operation of each kind.
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
        RateLimit { note: None, until: None }
        Context { used: ContextUse::NONE }
        Reassign { to: text() }
        Pause { until: None }
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

/// An operation that the format does not have is refused as unsupported, and a refused operation changes nothing.
pub fn a_refused_operation_changes_nothing<C: Checkpoint>(samples: &[C]) {
    let context = OperationContext::at(noon(0));
    for sample in with_empty(samples) {
        for operation in operations() {
            let name = operation.name();
            let is_listed = C::OPERATIONS.contains(&name);
            let mut tried = sample.clone();
            let Err(error) = tried.apply(&operation, &context) else {
                assert!(
                    is_listed,
                    "`{name}` succeeded, but the format does not list it"
                );
                continue;
            };
            assert!(
                tried == sample,
                "`{name}` was refused ({error}), but changed the checkpoint"
            );
            let is_unsupported = matches!(error.kind(), ErrorKind::Unsupported { .. });
            assert!(
                is_unsupported != is_listed,
                "the format {} `{name}`, but refuses it with: {error}",
                if is_listed { "lists" } else { "does not list" }
            );
        }
    }
}
