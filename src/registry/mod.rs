//! The registry of formats: formats known by name at run time, detection of a file's format, and the operations on a
//! checkpoint whose type is not known.
//!
//! `fleet`, `difference` and the command use formats only through this registry, so they treat [a format of
//! yours](Formats::register) like those of the library.

mod any_checkpoints;
mod detect;
mod erased;
mod host;
mod verb;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};

#[cfg(feature = "schema")]
use crate::checkpoint::SchemaVersion;
use crate::checkpoint::{
    Checkpoint, CheckpointFile, Error, ErrorKind, Evidence, Given, Handoff, Input, Inputs, Layout,
    Notice, Progress, Pulse, Report, Result, ResumePlan, RuleContext, Start, Thresholds, Timestamp,
};
use crate::checkpoints::Checkpoints;
#[cfg(feature = "schema")]
use crate::formats::builder_state::{self, BuilderState};
use crate::formats::{
    AgentCheckpoint, BuildCheckpoint, Converted, PipelineState, SitebuilderCheckpoint,
    StoryCheckpoint, TaskCheckpoint, agent_session, story_pipeline,
};
use crate::json::{Code, Document, Violation};
use crate::resume::ForeignMember;
#[cfg(feature = "schema")]
use crate::schema::{BASE, Schemas};

pub use any_checkpoints::AnyCheckpoints;
pub use detect::Detected;
use erased::{Erased, Typed};
pub use verb::{OwnVerb, VerbCall, VerbDone};

/// One format, independent of the type of its checkpoints.
///
/// [`Format::of`] creates one from any type that implements [`Checkpoint`].
///
/// # Examples
///
/// ```
/// use agent_checkpoint::RuleContext;
/// use agent_checkpoint::formats::Formats;
/// use agent_checkpoint::json::Document;
///
/// let formats = Formats::default();
/// let format = formats.get("task")?;
/// let document = Document::from_text(r#"{"agent": 7}"#)?;
/// let violations = format.violations(&document, &RuleContext::none())?;
/// assert!(violations.iter().any(|found| found.code.as_str() == "missing"));
/// # Ok::<(), agent_checkpoint::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Format {
    name: &'static str,
    /// The format of the checkpoints in its documents; it differs from `name` for a host file.
    inside: &'static str,
    operations: &'static [&'static str],
    transient: &'static [(Code, &'static str)],
    inputs: &'static [Input],
    verbs: &'static [OwnVerb],
    is_task: bool,
    agents_are_roles: bool,
    names_sources_only: bool,
    guide: Option<&'static str>,
    layout: fn() -> Layout,
    thresholds: fn() -> Thresholds,
    #[cfg(feature = "schema")]
    versions: &'static [SchemaVersion],
    #[cfg(feature = "schema")]
    schema: Option<fn() -> serde_json::Value>,
    recognise: fn(&Path, Option<&Document>) -> Option<Evidence>,
    violations: fn(&Document, &RuleContext<'_>) -> Result<Vec<Violation>>,
    convert: fn(&Handoff, DateTime<Utc>) -> Result<Converted<Document>>,
    checkpoint: &'static dyn Erased,
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Format").field(&self.name).finish()
    }
}

impl Format {
    /// The format of a type.
    #[must_use]
    pub fn of<C: Checkpoint>() -> Format {
        Format {
            name: C::FORMAT,
            inside: C::FORMAT,
            operations: C::OPERATIONS,
            transient: C::TRANSIENT,
            inputs: C::INPUTS,
            verbs: &[],
            is_task: C::IS_TASK,
            agents_are_roles: C::AGENTS_ARE_ROLES,
            names_sources_only: C::NAMES_SOURCES_ONLY,
            guide: C::GUIDE,
            layout: C::layout,
            thresholds: C::thresholds,
            #[cfg(feature = "schema")]
            versions: C::SCHEMA_VERSIONS,
            #[cfg(feature = "schema")]
            schema: None,
            recognise: C::recognise,
            violations: Typed::<C>::violations,
            convert: Typed::<C>::convert,
            checkpoint: const { &Typed::<C>::NEW },
        }
    }

    /// The format of a type, with the JSON Schema of its documents.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::formats::{Format, Formats, task::TaskCheckpoint};
    /// use agent_checkpoint::schema::Schemas;
    ///
    /// let mut formats = Formats::default();
    /// formats.register(Format::with_schema::<TaskCheckpoint>()); // a format of yours
    /// assert!(Schemas::of(&formats).names().any(|name| name == "task"));
    /// ```
    #[cfg(feature = "schema")]
    #[must_use]
    pub fn with_schema<C: Checkpoint + schemars::JsonSchema>() -> Format {
        Format {
            schema: Some(crate::schema::schema::<C>),
            ..Format::of::<C>()
        }
    }

    /// `builder-state`: its documents are host files, with `task` checkpoints inside them.
    pub(crate) fn builder_state() -> Format {
        Format {
            name: host::NAME,
            guide: host::GUIDE,
            layout: Layout::default,
            #[cfg(feature = "schema")]
            versions: builder_state::SCHEMA_VERSIONS,
            #[cfg(feature = "schema")]
            schema: Some(crate::schema::schema::<BuilderState>),
            recognise: host::recognise,
            violations: host::violations,
            convert: host::convert,
            ..Format::of::<TaskCheckpoint>()
        }
    }

    /// Adds verbs that the command has for this format alone.
    #[must_use]
    pub fn with_verbs(mut self, verbs: &'static [OwnVerb]) -> Format {
        self.verbs = verbs;
        self
    }

    /// The [options](Checkpoint::INPUTS) that the command has for this format.
    #[must_use]
    pub fn inputs(&self) -> &'static [Input] {
        self.inputs
    }

    /// The verbs that the command has for this format alone.
    #[must_use]
    pub fn verbs(&self) -> &'static [OwnVerb] {
        self.verbs
    }

    /// Whether its finished steps [name source files only](Checkpoint::NAMES_SOURCES_ONLY).
    #[must_use]
    pub fn names_sources_only(&self) -> bool {
        self.names_sources_only
    }

    /// Whether each of its checkpoints [is a task](Checkpoint::IS_TASK).
    #[must_use]
    pub fn is_task(&self) -> bool {
        self.is_task
    }

    /// Whether its agents [are roles](Checkpoint::AGENTS_ARE_ROLES).
    pub(crate) fn agents_are_roles(&self) -> bool {
        self.agents_are_roles
    }

    /// Creates a first checkpoint: see [`Checkpoint::start`]. [`adopt`](Format::adopt) puts it into a host file.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::start`].
    pub fn start(&self, start: &Start<'_>) -> Result<Document> {
        self.checkpoint.start(start)
    }

    /// Reads the inputs of its rules from the given options: see [`Checkpoint::take_inputs`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::take_inputs`].
    pub fn take_inputs(&self, given: &Given, file: &CheckpointFile<'_>) -> Result<Inputs> {
        self.checkpoint.take_inputs(given, file)
    }

    /// Reads the inputs of its rules from files beside the checkpoint: see [`Checkpoint::inputs_beside`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::inputs_beside`].
    pub fn inputs_beside(
        &self,
        file: &CheckpointFile<'_>,
        report: Option<&Report>,
    ) -> Result<Inputs> {
        self.checkpoint.inputs_beside(file, report)
    }

    /// Refuses a change of a file that no reader of the protocol looks for: see [`Checkpoint::check_place`].
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::check_place`].
    pub fn check_place(&self, file: &CheckpointFile<'_>) -> Result<()> {
        self.checkpoint.check_place(file)
    }

    /// The name of the format, such as `task`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether its documents are host files, with checkpoints of another format in their slots.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.name != self.inside
    }

    /// The names of the [operations](Checkpoint::OPERATIONS) that its checkpoints accept, such as `step done`.
    #[must_use]
    pub fn operations(&self) -> &'static [&'static str] {
        self.operations
    }

    /// The [violations](Checkpoint::TRANSIENT) of states that its protocol passes through.
    #[must_use]
    pub fn transient(&self) -> &'static [(Code, &'static str)] {
        self.transient
    }

    /// The [page for an agent](Checkpoint::GUIDE) that keeps checkpoints of this format.
    #[must_use]
    pub fn guide(&self) -> Option<&'static str> {
        self.guide
    }

    /// How its protocol names the files of a folder.
    #[must_use]
    pub fn layout(&self) -> Layout {
        (self.layout)()
    }

    /// The thresholds of silence of its protocol.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        (self.thresholds)()
    }

    /// The evidence that a file has this format, from its path and its document; `None` as document if the file is
    /// corrupt.
    #[must_use]
    pub fn recognise(&self, path: &Path, document: Option<&Document>) -> Option<Evidence> {
        (self.recognise)(path, document)
    }

    /// The violations of the format's rules in a whole document.
    ///
    /// # Errors
    ///
    /// Those of [`read`](crate::checkpoint::read).
    pub fn violations(
        &self,
        document: &Document,
        context: &RuleContext<'_>,
    ) -> Result<Vec<Violation>> {
        (self.violations)(document, context)
    }

    /// Reads and judges one checkpoint. For a host file pass the part that was [extracted](Document::extract) from it.
    ///
    /// # Errors
    ///
    /// Those of [`read`](crate::checkpoint::read).
    pub fn inspect(&self, document: &Document, context: &RuleContext<'_>) -> Result<Inspected> {
        self.checkpoint.inspect(document, context)
    }

    /// The members of a checkpoint that the format does not declare.
    ///
    /// # Errors
    ///
    /// Those of [`read`](crate::checkpoint::read).
    pub fn foreign_members(&self, document: &Document) -> Result<Vec<ForeignMember>> {
        self.checkpoint.foreign_members(document)
    }

    /// A document of this format with the same hand-off, as [`convert`](crate::formats::convert) makes it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] when the format cannot be made from a hand-off.
    pub fn convert(&self, handoff: &Handoff, now: DateTime<Utc>) -> Result<Converted<Document>> {
        (self.convert)(handoff, now)
    }

    /// Creates a document of this format that contains a checkpoint of another format, with every value byte for byte.
    /// `None` unless both formats keep the same kind of checkpoint, as `task` and `builder-state` do.
    ///
    /// # Errors
    ///
    /// Those of [`Document::graft`] and [`Document::set`].
    pub fn adopt(&self, checkpoint: &Document, from: &Format) -> Result<Option<Document>> {
        if self.inside != from.inside {
            return Ok(None);
        }
        match (from.is_host(), self.is_host()) {
            (true, false) => host::taken_out(checkpoint).map(Some),
            (_, true) => host::put_in(checkpoint).map(Some),
            (false, false) => Ok(Some(checkpoint.clone())),
        }
    }

    /// Refuses a change that the protocol never allows, by whatever means it is made.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::complete_change`].
    pub fn check_change(&self, before: &Document, after: &Document) -> Result<()> {
        self.checkpoint.check_change(before, after)
    }

    /// The checkpoints of this format in the store of `view`, with the settings of `view`.
    #[must_use]
    pub fn checkpoints(&self, view: &Checkpoints<()>) -> Box<dyn AnyCheckpoints> {
        self.checkpoint.checkpoints(view)
    }
}

/// One checkpoint of any format, read and judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspected {
    /// The hand-off for the next agent.
    pub handoff: Handoff,
    /// When the checkpoint was last changed.
    pub updated_at: Option<Timestamp>,
    /// Its signals of whether the agent is alive.
    pub pulse: Pulse,
    /// How far the task is. Times are relative to the present time of the context; without one they are absent.
    pub progress: Progress,
    /// The files that no other active checkpoint should name.
    pub exclusive_files: Vec<String>,
    /// Whether and how to resume, by the protocol's own rules.
    pub plan: ResumePlan,
    /// The violations of the format's rules.
    pub violations: Vec<Violation>,
    /// The phase of the task according to its supervisor, if it differs from the checkpoint's.
    pub supervised_in: Option<String>,
    /// Whether the elapsed time of its progress continues; `None` if that is unknown.
    pub(crate) goes_on: Option<bool>,
    messages: Messages,
}

impl Inspected {
    /// The message that the protocol defines about an agent that is late or stalled, if it does.
    #[must_use]
    pub fn notice(&self, notice: Notice, now: DateTime<Utc>) -> Option<String> {
        (self.messages.0)(notice, now)
    }
}

/// Renders the messages of the checkpoint that was read.
#[derive(Clone)]
struct Messages(Arc<dyn Fn(Notice, DateTime<Utc>) -> Option<String> + Send + Sync>);

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Messages")
    }
}

/// The formats that a program knows.
///
/// [`Formats::default`] has those of the library; [`register`](Formats::register) adds your own.
#[derive(Clone, Debug)]
pub struct Formats(Vec<Format>);

#[cfg(feature = "schema")]
fn ours<C: Checkpoint + schemars::JsonSchema>() -> Format {
    Format::with_schema::<C>()
}

#[cfg(not(feature = "schema"))]
fn ours<C: Checkpoint>() -> Format {
    Format::of::<C>()
}

impl Default for Formats {
    fn default() -> Self {
        Formats(vec![
            ours::<TaskCheckpoint>(),
            Format::builder_state(),
            ours::<AgentCheckpoint>().with_verbs(agent_session::VERBS),
            ours::<SitebuilderCheckpoint>(),
            ours::<StoryCheckpoint>(),
            ours::<PipelineState>().with_verbs(story_pipeline::VERBS),
            ours::<BuildCheckpoint>(),
        ])
    }
}

impl Formats {
    /// Adds a format, replacing one with the same name.
    pub fn register(&mut self, format: Format) {
        self.0.retain(|known| known.name != format.name);
        self.0.push(format);
    }

    /// All formats.
    pub fn iter(&self) -> impl Iterator<Item = &Format> {
        self.0.iter()
    }

    /// The format with this name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownFormat`], with the names of all formats.
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

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|format| format.name.to_owned()).collect()
    }
}

#[cfg(feature = "schema")]
impl Default for Schemas {
    fn default() -> Schemas {
        Schemas::of(&Formats::default())
    }
}

#[cfg(feature = "schema")]
impl Schemas {
    /// The schema of each of these formats that has one.
    #[must_use]
    pub fn of(formats: &Formats) -> Schemas {
        formats
            .iter()
            .fold(Schemas::none(), |all, format| match format.schema {
                Some(make) => all.with_entry(format.name, BASE, format.versions, make),
                None => all,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_of_one_stem_only() {
        let formats = Formats::default();
        let layout = |name: &str| formats.get(name).unwrap().layout();
        let is = |format: &str, name, stem| layout(format).is_archive_of(name, stem);
        assert!(is("task", "US-1%complete-1700000000.json", "US-1"));
        assert!(is("task", "US-1%aborted-1700000000-2.json", "US-1"));
        assert!(!is("task", "US-10%complete-1700000000.json", "US-1"));
        assert!(!is("task", "US-1.json", "US-1"));
        assert!(is("agent-session", "a_crashed_1700000000.json", "a"));
        assert!(!is("agent-session", "a_b_crashed_1700000000.json", "a"));
        assert!(is("sitebuilder", "a-1-complete.json", "a-1"));
        assert!(is("sitebuilder", "a-1-complete-2.json", "a-1"));
        assert!(!is("sitebuilder", "a-10-complete.json", "a-1"));
        assert!(!is("sitebuilder", "a-1-complete-x.json", "a-1"));
    }
}
