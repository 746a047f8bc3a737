//! What can be done with a document of a format whose type is known only at run time.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::builder_state::{self, BuilderState};
use super::detect::Detected;
use super::survey::{self, Surveyed};
use super::task::TaskCheckpoint;
use super::{
    AgentCheckpoint, BuildCheckpoint, PipelineState, SitebuilderCheckpoint, StoryCheckpoint,
};
use crate::checkpoint::{
    Checkpoint, Error, ErrorKind, Evidence, Handoff, Inspection, Layout, Notice, Result,
    RuleContext, Thresholds, Timestamp, any_migration, judge, read,
};
use crate::json::{Code, Document, Violation};
use crate::resume::{ForeignMember, foreign};

/// One format, behind functions.
///
/// [`Format::of`] makes one of any type that implements [`Checkpoint`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Format {
    /// Its name, such as `task`.
    pub name: &'static str,
    /// Reads a whole document and judges it.
    pub examine: fn(&Document, &RuleContext<'_>) -> Result<Vec<Violation>>,
    /// Reads one checkpoint and inspects it.
    pub open: fn(&Document, &RuleContext<'_>) -> Result<Examined>,
    /// How well a file fits, by its path and its document.
    pub recognise: fn(&Path, Option<&Document>) -> Option<Evidence>,
    /// Reads one checkpoint and tells what a supervisor asks at this time.
    pub survey: fn(&Document, &RuleContext<'_>, DateTime<Utc>) -> Result<Surveyed>,
    /// The protocol's own message about an agent that is late or stalled, where it has one.
    pub notice: fn(&Document, Notice, DateTime<Utc>) -> Option<String>,
    /// How long a silence may be by the protocol.
    pub thresholds: fn() -> Thresholds,
    /// How the protocol names its files.
    pub layout: fn() -> Layout,
}

/// One checkpoint of any format, read and judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Examined {
    /// What the next agent needs.
    pub handoff: Handoff,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// The files it names.
    pub files: Vec<String>,
    /// What breaks the format's rules.
    pub violations: Vec<Violation>,
    /// Members that the format does not declare.
    pub foreign: Vec<ForeignMember>,
}

impl Format {
    /// The format of a type.
    #[must_use]
    pub fn of<C: Checkpoint>() -> Format {
        Format {
            name: C::FORMAT,
            examine: |document, context| Ok(open::<C>(document, context)?.violations),
            open: open::<C>,
            recognise: C::recognise,
            survey: survey::survey::<C>,
            notice: survey::notice::<C>,
            thresholds: C::thresholds,
            layout: C::layout,
        }
    }

    /// The `builder-state` format: documents are host files, checkpoints the objects inside.
    #[must_use]
    pub fn builder_state() -> Format {
        Format {
            name: builder_state::FORMAT,
            examine: examine_host,
            open: open::<TaskCheckpoint>,
            recognise: builder_state::recognise,
            survey: survey::survey::<TaskCheckpoint>,
            notice: survey::notice::<TaskCheckpoint>,
            thresholds: TaskCheckpoint::thresholds,
            layout: Layout::default,
        }
    }
}

fn open<C: Checkpoint>(document: &Document, context: &RuleContext<'_>) -> Result<Examined> {
    let current = read::<C>(document)?;
    let reading = &current.reading;
    let judged = judge(&current.document, reading, context);
    Ok(Examined {
        handoff: judged.handoff,
        updated_at: reading.value.updated_at().cloned(),
        files: reading
            .value
            .files()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        violations: judged.violations,
        foreign: foreign::members(&current.document, &reading.value, reading.left_out()),
    })
}

// The checkpoints of a host are read with it, so a migration of theirs would not run.
const _: () = assert!(!any_migration(TaskCheckpoint::SCHEMA_VERSIONS));

fn examine_host(host: &Document, context: &RuleContext<'_>) -> Result<Vec<Violation>> {
    let reading = host.read::<BuilderState>()?;
    let mut inspection = Inspection::new(host, &reading, context);
    reading.value.inspect(&mut inspection);
    let mut all = reading.violations.clone();
    all.retain(is_ours);
    all.extend(inspection.finish());
    Ok(all)
}

/// Whether a violation of a host's shape concerns its checkpoints: the other fields are the builder's own,
/// in whatever types it has them.
fn is_ours(violation: &Violation) -> bool {
    let shape = [
        Code::WRONG_TYPE,
        Code::OUT_OF_RANGE,
        Code::LONE_SURROGATE,
        Code::UNREADABLE,
    ];
    let places = ["/activePrd", "/activeWork", "/adhocQueue", "/lastHeartbeat"];
    !shape.contains(&violation.code)
        || places.contains(&violation.pointer.as_str())
        || violation
            .pointer
            .split('/')
            .any(|token| token == "checkpoint")
}

/// The formats of a program.
///
/// [`Formats::default`] has those of the library; [`register`](Formats::register) adds one of your
/// own.
#[derive(Clone, Debug)]
pub struct Formats(Vec<Format>);

impl Default for Formats {
    fn default() -> Self {
        Formats(vec![
            Format::of::<TaskCheckpoint>(),
            Format::builder_state(),
            Format::of::<AgentCheckpoint>(),
            Format::of::<SitebuilderCheckpoint>(),
            Format::of::<StoryCheckpoint>(),
            Format::of::<PipelineState>(),
            Format::of::<BuildCheckpoint>(),
        ])
    }
}

impl Formats {
    /// Adds a format, in place of one with the same name.
    pub fn register(&mut self, format: Format) {
        self.0.retain(|known| known.name != format.name);
        self.0.push(format);
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Format> {
        self.0.iter()
    }

    /// The format with this name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownFormat`] with the names there are.
    pub fn get(&self, name: &str) -> Result<&Format> {
        self.0
            .iter()
            .find(|format| format.name == name)
            .ok_or_else(|| {
                Error::new(ErrorKind::UnknownFormat {
                    name: Some(name.to_owned()),
                    found: String::new(),
                    known: self.names(),
                })
            })
    }

    /// The error of a file that fits no format.
    pub(super) fn unknown(&self, found: impl Into<String>) -> Error {
        Error::new(ErrorKind::UnknownFormat {
            name: None,
            found: found.into(),
            known: self.names(),
        })
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|format| format.name.to_owned()).collect()
    }

    /// The format of a file, by its path and its document, with the evidence.
    ///
    /// A corrupt document (`None`) is judged by its path alone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownFormat`] when it fits none, [`ErrorKind::Ambiguous`] when it fits two
    /// equally well.
    pub fn detect(&self, path: &Path, document: Option<&Document>) -> Result<Detected> {
        let mut fitting: Vec<Detected> = self
            .0
            .iter()
            .filter_map(|format| {
                (format.recognise)(path, document).map(|evidence| Detected {
                    format: *format,
                    evidence,
                })
            })
            .collect();
        fitting.sort_by_key(|detected| std::cmp::Reverse(detected.evidence.strength));
        match fitting.as_slice() {
            // A name alone is no evidence, but where nothing else is there to be looked at.
            [] => Err(
                self.unknown(match document.and_then(|_| self.detect(path, None).ok()) {
                    Some(place) => format!(
                        "its place is one of {}, and it has none of its members",
                        place.format.name
                    ),
                    None => "its members tell no known format".to_owned(),
                }),
            ),
            [first, second, ..] if first.evidence.strength == second.evidence.strength => {
                Err(Error::new(ErrorKind::Ambiguous {
                    what: "format that fits",
                    candidates: fitting
                        .iter()
                        .filter(|other| other.evidence.strength == first.evidence.strength)
                        .map(|other| other.format.name.to_owned())
                        .collect(),
                }))
            }
            [first, ..] => Ok(first.clone()),
        }
        .map_err(|error| error.with_path(path))
    }
}
