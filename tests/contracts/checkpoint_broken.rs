//! A checkpoint type that is broken in one way for each check of the testkit.

use std::collections::BTreeMap;
use std::path::Path;

use agent_checkpoint::formats::Inspection;
use agent_checkpoint::json::Document;
use agent_checkpoint::testkit::Verdict;
use agent_checkpoint::testkit::checkpoint::{check, checks};
use agent_checkpoint::{
    Checkpoint, Error, Handoff, Limits, Operation, OperationContext, Timestamp, Truncation,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};

/// A type that is right but for its numbered fault: a struct, and the methods that are not those of all.
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
notebook!(TellsAFileTwice {} "notebook", all_and_the_first_again, set;);
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

/// What is written is not what is read: a violation that is always there.
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

/// Equal to all others, and written as another number each time.
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

/// What a check finds in a type.
struct Found(&'static str, &'static str, Verdict);

fn find<C: Checkpoint>(name: &'static str, samples: &[C]) -> Found {
    let check = checks::<C>().find(|check| check.name == name);
    let kind = std::any::type_name::<C>().rsplit("::").next().unwrap();
    Found(name, kind, check.unwrap().judge(samples))
}

#[test]
fn every_check_finds_the_type_that_breaks_it() {
    let found = [
        find("an_empty_object_reads", &[NeedsItsTitle::default()]),
        find(
            "what_is_written_reads_back",
            &[ForgetsACount {
                pages: 7,
                ..Default::default()
            }],
        ),
        find(
            "what_does_not_fit_is_a_violation_and_costs_only_itself",
            &[SwallowsWrongTypes {
                mood: Some("good".into()),
                ..Default::default()
            }],
        ),
        find(
            "a_save_that_changes_nothing_changes_no_byte",
            &CountsItsWrites::samples(),
        ),
        find(
            "a_changed_value_changes_only_its_bytes",
            &[TrimsTexts {
                mood: "good".into(),
                ..Default::default()
            }],
        ),
        find(
            "unknown_keys_are_passed_over_and_stay",
            &RefusesUnknownKeys::samples(),
        ),
        find(
            "the_format_has_a_name_and_keeps_its_version",
            &HasNoGoodName::samples(),
        ),
        find(
            "a_stamp_is_the_time_of_the_last_change",
            &StampsOnce::samples(),
        ),
        find("what_is_cut_is_recorded", &CutsSilently::samples()),
        find(
            "whatever_was_read_can_be_reported",
            &TellsAFileTwice::samples(),
        ),
        find(
            "a_refused_operation_changes_nothing",
            &ChangesWhatItRefuses::samples(),
        ),
    ];
    let says = [
        "the whole checkpoint is lost",
        "reads as what is written as",
        "at /mood is read without a violation there as null",
        "unchanged, ",
        "the type writes a value at /mood, and does not read it",
        "at \"\" is not passed over",
        "\"My Log!\" is no name for a format",
        "the checkpoint says it was changed at",
        "\"half of the index\" went and is not in the record of what was cut",
        "a file is told more than once",
        "`complete` was refused (not yet), and changed the checkpoint",
    ];
    for (Found(name, kind, verdict), says) in found.iter().zip(says) {
        match verdict {
            Verdict::Failed(why) if why.contains(says) => println!("{kind}, {name}: {why}"),
            other => panic!("{kind}, {name}: {other:?}"),
        }
    }
    let broken: Vec<&str> = found.iter().map(|Found(name, ..)| *name).collect();
    let all: Vec<&str> = checks::<Right>().map(|check| check.name).collect();
    assert_eq!(broken, all);
}

#[test]
fn a_type_that_is_right_passes_them_all() {
    let report = check(&Right::samples());
    assert!(report.is_conformant(), "{}", report.to_markdown());
    assert_eq!(report.skipped().count(), 0);
    // The format that recognises nothing is none the worse for it.
    let document = Document::from_text("{}").unwrap();
    assert!(Right::recognise(Path::new("a.json"), Some(&document)).is_none());
}

/// A violation of another place does not tell of this one.
#[test]
fn a_violation_elsewhere_excuses_nothing() {
    let name = "what_does_not_fit_is_a_violation_and_costs_only_itself";
    let Found(_, _, verdict) = find(name, &[ComplainsElsewhere::default()]);
    let says = "at /mood is read without a violation there";
    assert!(
        matches!(&verdict, Verdict::Failed(why) if why.contains(says)),
        "{verdict:?}"
    );
}

/// Not every text is a key of every map.
#[test]
fn a_map_of_numbers_passes_them_all() {
    let pages = [(7, "seven".to_owned()), (19, "nineteen".to_owned())];
    let report = check(&[HasPages {
        pages: pages.into(),
        ..HasPages::default()
    }]);
    assert!(report.is_conformant(), "{}", report.to_markdown());
}

#[test]
fn a_type_without_a_stamp_is_let_off_that_check_and_no_other() {
    let samples = [HasNoTime {
        note: Some("half of the index".to_owned()),
        ..HasNoTime::default()
    }];
    let report = check(&samples);
    assert!(report.is_conformant(), "{}", report.to_markdown());
    let skipped: Vec<_> = report.skipped().map(|(name, _)| name).collect();
    assert_eq!(skipped, ["a_stamp_is_the_time_of_the_last_change"]);
    // One that has such a time, and leaves it as it is, is not.
    let saved = Some(Timestamp::like(None, DateTime::UNIX_EPOCH));
    let report = check(&[HasNoTime {
        saved,
        ..HasNoTime::default()
    }]);
    assert!(!report.is_conformant());
}

#[test]
fn without_samples_nothing_is_proved() {
    let report = check::<Right>(&[]);
    assert!(report.failed().any(|(_, why)| why.contains("no samples")));
}
