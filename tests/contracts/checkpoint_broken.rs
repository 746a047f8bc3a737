//! The testkit's rules for checkpoint types: each rule finds a broken type, and accepts correct ones.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use agent_checkpoint::formats::Inspection;
use agent_checkpoint::json::Document;
use agent_checkpoint::testkit::checkpoint;
use agent_checkpoint::{
    Checkpoint, Error, Handoff, Limits, Operation, OperationContext, Timestamp, Truncation,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};

/// A type that is correct except for its numbered fault: a struct, and the methods in which it differs.
macro_rules! notebook {
    ($name:ident { $($(#[$of_field:meta])* $field:ident: $kind:ty),* } $($methods:tt)*) => {
        notebook!(@struct [#[serde(default)]] $name { $($(#[$of_field])* $field: $kind),* } $($methods)*);
    };
    (@struct [$($of_struct:tt)*] $name:ident { $($(#[$of_field:meta])* $field:ident: $kind:ty),* }
     $format:literal, $files:ident, $stamp:ident; $($methods:item)*) => {
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        $($of_struct)*
        struct $name {
            $($(#[$of_field])* $field: $kind,)*
            note: Option<String>,
            chapters: Vec<String>,
            saved: Option<Timestamp>,
        }

        impl Checkpoint for $name {
            const FORMAT: &'static str = $format;
            fn updated_at(&self) -> Option<&Timestamp> {
                self.saved.as_ref()
            }
            fn stamp(&mut self, now: DateTime<Utc>) {
                $stamp(&mut self.saved, now);
            }
            fn files(&self) -> Vec<&str> {
                $files(&self.chapters)
            }
            fn handoff(&self) -> Handoff {
                Handoff::default()
            }
            fn inspect(&self, _: &mut Inspection<'_>) {}
            $($methods)*
        }

        impl $name {
            #[allow(dead_code, reason = "some faults need samples of their own")]
            fn samples() -> Vec<Self> {
                vec![$name {
                    note: Some("half of the index".to_owned()),
                    chapters: vec!["one.md".to_owned(), "two.md".to_owned()],
                    ..$name::default()
                }]
            }
        }
    };
}

fn each_once(chapters: &[String]) -> Vec<&str> {
    let mut files: Vec<&str> = Vec::new();
    for chapter in chapters {
        if !files.contains(&chapter.as_str()) {
            files.push(chapter);
        }
    }
    files
}

fn all_and_the_first_again(chapters: &[String]) -> Vec<&str> {
    let all = chapters.iter().chain(chapters.first());
    all.map(String::as_str).collect()
}

fn set(saved: &mut Option<Timestamp>, now: DateTime<Utc>) {
    *saved = Some(Timestamp::like(saved.as_ref(), now));
}

fn set_once(saved: &mut Option<Timestamp>, now: DateTime<Utc>) {
    if saved.is_none() {
        set(saved, now);
    }
}

notebook!(Right {} "notebook", each_once, set;);
notebook!(@struct [] NeedsItsTitle { title: String } "notebook", each_once, set;);
notebook!(ForgetsACount { #[serde(skip_deserializing)] pages: u64 } "notebook", each_once, set;);
notebook!(SwallowsWrongTypes { #[serde(deserialize_with = "or_nothing")] mood: Option<String> }
    "notebook", each_once, set;);
notebook!(ComplainsElsewhere {
    #[serde(deserialize_with = "or_nothing")] mood: Option<String>,
    #[serde(serialize_with = "as_word")] pages: u64
} "notebook", each_once, set;);
notebook!(HasPages { pages: BTreeMap<u32, String> } "notebook", each_once, set;);
notebook!(HasNoTime {} "notebook", each_once, set_never;);
notebook!(CountsItsWrites { #[serde(serialize_with = "counted", skip_deserializing)] writes: Writes }
    "notebook", each_once, set;);
notebook!(TrimsTexts { #[serde(deserialize_with = "trimmed")] mood: String } "notebook", each_once, set;);
notebook!(@struct [#[serde(default, deny_unknown_fields)]] RefusesUnknownKeys {} "notebook", each_once, set;);
notebook!(HasNoGoodName {} "My Log!", each_once, set;);
notebook!(StampsOnce {} "notebook", each_once, set_once;);
notebook!(CutsSilently {} "notebook", each_once, set;
    fn shrink(&mut self, limits: &Limits, _: Option<&Self>) -> Truncation {
        if limits.partial_work.is_some() {
            self.note = None;
        }
        Truncation::default()
    }
);
notebook!(NamesAFileTwice {} "notebook", all_and_the_first_again, set;);
notebook!(ChangesWhatItRefuses {} "notebook", each_once, set;
    const OPERATIONS: &'static [&'static str] = &["complete"];
    fn apply(&mut self, operation: &Operation, _: &OperationContext<'_>) -> Result<(), Error> {
        if matches!(operation, Operation::Complete) {
            self.chapters.clear();
            return Err(Error::refused("not yet"));
        }
        Err(Error::unsupported(operation, Self::OPERATIONS))
    }
);

fn set_never(_: &mut Option<Timestamp>, _: DateTime<Utc>) {}

/// It is not written as it is read, which causes a violation every time.
fn as_word<S: serde::Serializer>(_: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("seven")
}

fn or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_str().map(str::to_owned))
}

fn trimmed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(String::deserialize(deserializer)?
        .trim_end_matches('x')
        .to_owned())
}

/// Equal to all others, but written as a different number each time.
#[derive(Clone, Debug, Default)]
struct Writes;

impl PartialEq for Writes {
    fn eq(&self, _: &Writes) -> bool {
        true
    }
}

impl<'de> Deserialize<'de> for Writes {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Ok(Writes)
    }
}

fn counted<S: serde::Serializer>(_: &Writes, serializer: S) -> Result<S::Ok, S::Error> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    serializer.serialize_u64(COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The message with which a rule fails.
fn failure(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap()
}

macro_rules! names {
    ({ $list:ident } $($rule:ident)+) => {
        const $list: &[&str] = &[$(stringify!($rule)),+];
    };
}

agent_checkpoint::__checkpoint_rules! { names, { RULES } }

macro_rules! each {
    ($($rule:ident($samples:expr) $says:literal)+) => {
        [$((
            stringify!($rule),
            $says,
            failure(|| { let _skipped = checkpoint::$rule(&$samples); }),
        )),+]
    };
}

#[test]
#[allow(clippy::let_unit_value, reason = "some rules return nothing")]
fn every_rule_finds_a_type_that_breaks_it() {
    let found = each! {
        an_empty_object_reads([NeedsItsTitle::default()]) "the complete checkpoint is lost"
        a_written_checkpoint_reads_back([ForgetsACount { pages: 7, ..Default::default() }]) "reads as another checkpoint"
        a_wrong_type_is_a_violation_and_costs_only_itself([SwallowsWrongTypes { mood: Some("good".into()), ..Default::default() }]) "at /mood is read without a violation"
        an_unchanged_save_changes_no_byte(CountsItsWrites::samples()) "unchanged, "
        a_changed_value_changes_only_its_bytes([TrimsTexts { mood: "good".into(), ..Default::default() }]) "the type writes a value at /mood, but does not read it"
        unknown_keys_are_ignored_and_stay(RefusesUnknownKeys::samples()) "at \"\" is not ignored"
        the_format_has_a_name_and_keeps_its_version(HasNoGoodName::samples()) "\"My Log!\" is no name of a format"
        a_stamp_is_the_time_of_the_last_change(StampsOnce::samples()) "the time of the last change after a stamp"
        dropped_text_is_recorded(CutsSilently::samples()) "\"half of the index\" was removed"
        every_reading_can_be_reported(NamesAFileTwice::samples()) "a file is named more than once"
        a_refused_operation_changes_nothing(ChangesWhatItRefuses::samples()) "`complete` was refused (not yet), but changed"
    };
    for (rule, says, message) in &found {
        assert!(message.contains(says), "{rule}: {message}");
    }
    let names: Vec<&str> = found.iter().map(|(rule, ..)| *rule).collect();
    assert_eq!(names, RULES);
}

#[test]
fn a_right_type_passes_every_rule() {
    checkpoint::check_all(&Right::samples());
    let stamp = checkpoint::a_stamp_is_the_time_of_the_last_change(&Right::samples());
    assert_eq!(stamp, Ok(()));
    // The default of `recognise` recognises nothing.
    let document = Document::from_text("{}").unwrap();
    assert!(Right::recognise(Path::new("a.json"), Some(&document)).is_none());
}

#[test]
fn a_violation_of_another_value_is_no_excuse() {
    let message = failure(|| {
        checkpoint::a_wrong_type_is_a_violation_and_costs_only_itself(&[
            ComplainsElsewhere::default(),
        ]);
    });
    assert!(
        message.contains("at /mood is read without a violation"),
        "{message}"
    );
}

/// Not every text is a valid key of such a map.
#[test]
fn a_map_of_numbers_passes_every_rule() {
    let pages = [(7, "seven".to_owned()), (19, "nineteen".to_owned())];
    checkpoint::check_all(&[HasPages {
        pages: pages.into(),
        ..HasPages::default()
    }]);
}

#[test]
fn a_type_without_a_stamp_skips_the_rule_on_stamps() {
    let samples = HasNoTime::samples();
    checkpoint::check_all(&samples);
    assert!(checkpoint::a_stamp_is_the_time_of_the_last_change(&samples).is_err());
    // A type that has such a time and does not change it breaks the rule.
    let samples = [HasNoTime {
        saved: Some(Timestamp::like(None, DateTime::UNIX_EPOCH)),
        ..HasNoTime::default()
    }];
    let message = failure(|| checkpoint::check_all(&samples));
    assert!(
        message.contains("the time of the last change after a stamp"),
        "{message}"
    );
}

#[test]
fn a_rule_needs_samples() {
    let message = failure(|| checkpoint::check_all::<Right>(&[]));
    assert!(message.contains("no samples"), "{message}");
}
