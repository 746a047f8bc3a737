//! The command line options of one format, and their values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};

use super::{Error, Key, Result};
use crate::json::Document;

/// An option that the command offers for a format.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Input {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// The kind of value it takes.
    pub kind: InputKind,
    /// Its description for `--help`. The command adds the names of the formats that have it.
    pub help: &'static str,
    /// The verbs that take it, such as `start` and `gate pass`. Ignored if it belongs to a single verb, as in
    /// [`OwnVerb`](crate::formats::OwnVerb).
    pub verbs: &'static [&'static str],
    /// Options that cannot be combined with it.
    pub excludes: &'static [&'static str],
}

impl Input {
    /// An option of these verbs.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: InputKind,
        help: &'static str,
        verbs: &'static [&'static str],
    ) -> Self {
        Input {
            name,
            kind,
            help,
            verbs,
            excludes: &[],
        }
    }

    /// The same option, which cannot be combined with these others.
    #[must_use]
    pub const fn excluding(mut self, others: &'static [&'static str]) -> Self {
        self.excludes = others;
        self
    }
}

/// The kind of value that an [`Input`] takes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum InputKind {
    /// A text that is not blank.
    Text,
    /// One or more texts that are not blank.
    Texts,
    /// A whole number from the first to the second, both included.
    Number(u64, u64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A length of time, such as `20m`.
    Time,
    /// The name of a file.
    File,
    /// A flag without a value.
    Flag,
    /// A positional text after the verb; `true` if it is required.
    Argument(bool),
}

/// The values of the [inputs](Input) of a verb, by name.
#[derive(Clone, Debug, Default)]
pub struct Given(BTreeMap<String, GivenValue>);

/// A value of [`Given`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GivenValue {
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// A whole number.
    Number(u64),
    /// A length of time.
    Time(TimeDelta),
    /// A file.
    File(PathBuf),
    /// The flag was given.
    Flag,
}

impl Given {
    /// Sets a value.
    pub fn set(&mut self, name: impl Into<String>, value: GivenValue) {
        self.0.insert(name.into(), value);
    }

    /// The names of the given inputs, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether the input with this name was given.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The value of this name, if it is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            GivenValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The texts of this name; empty if there are none.
    #[must_use]
    pub fn texts(&self, name: &str) -> &[String] {
        match self.0.get(name) {
            Some(GivenValue::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// The value of this name, if it is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.0.get(name)? {
            GivenValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The value of this name, if it is a length of time.
    #[must_use]
    pub fn time(&self, name: &str) -> Option<TimeDelta> {
        match self.0.get(name)? {
            GivenValue::Time(time) => Some(*time),
            _ => None,
        }
    }

    /// The value of this name, if it is a file.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&Path> {
        match self.0.get(name)? {
            GivenValue::File(path) => Some(path),
            _ => None,
        }
    }
}

/// A checkpoint's file, and how to read the files that belong to it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct CheckpointFile<'a> {
    /// Its path. The file need not exist.
    pub path: &'a Path,
    /// The project's folder, if known.
    pub root: Option<&'a Path>,
    /// Whether unreadable parts of other files are skipped, as in a scan; otherwise they are errors.
    pub lenient: bool,
    /// Reads another file; `None` if it does not exist.
    pub read: &'a dyn Fn(&Path) -> Result<Option<Document>>,
}

impl fmt::Debug for CheckpointFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CheckpointFile").field(&self.path).finish()
    }
}

impl<'a> CheckpointFile<'a> {
    /// A file at this path.
    pub fn new(path: &'a Path, read: &'a dyn Fn(&Path) -> Result<Option<Document>>) -> Self {
        CheckpointFile {
            path,
            root: None,
            lenient: false,
            read,
        }
    }

    /// Skips unreadable parts of other files.
    #[must_use]
    pub fn leniently(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Sets the project's folder.
    #[must_use]
    pub fn in_project(mut self, root: &'a Path) -> Self {
        self.root = Some(root);
        self
    }

    /// Reads a file that the caller named.
    ///
    /// # Errors
    ///
    /// Those of reading it, and the code `not-found` when it does not exist.
    pub fn read_named(&self, path: &Path) -> Result<Document> {
        let missing =
            || Error::other("not-found", "there is no such file; check the path").with_path(path);
        (self.read)(path)?.ok_or_else(missing)
    }
}

/// The values from which a first checkpoint is made: see [`Checkpoint::start`](super::Checkpoint::start).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Start<'a> {
    /// The key of the checkpoint.
    pub key: &'a Key,
    /// Whether the caller named the key; otherwise it was derived from the file's name.
    pub key_is_named: bool,
    /// The agent that begins.
    pub agent: Option<&'a str>,
    /// Its session.
    pub session: Option<&'a str>,
    /// The steps of the plan.
    pub plan: &'a [String],
    /// The format's own inputs.
    pub given: &'a Given,
    /// Where the checkpoint will be.
    pub file: CheckpointFile<'a>,
    /// The present time.
    pub now: DateTime<Utc>,
}

impl<'a> Start<'a> {
    /// The values for a first checkpoint with a plan.
    pub fn new(
        key: &'a Key,
        plan: &'a [String],
        given: &'a Given,
        file: CheckpointFile<'a>,
        now: DateTime<Utc>,
    ) -> Self {
        Start {
            key,
            key_is_named: true,
            agent: None,
            session: None,
            plan,
            given,
            file,
            now,
        }
    }

    /// The values that the format requires. Each comes with its name for a person, such as `a session (--session)`.
    ///
    /// # Errors
    ///
    /// The code `failed`, with the names of all values that are missing.
    pub fn needs<T: ?Sized, const N: usize>(
        &self,
        format: &str,
        needed: [(Option<&'a T>, &str); N],
    ) -> Result<[&'a T; N]> {
        let given: Vec<&T> = needed.iter().filter_map(|(value, _)| *value).collect();
        given.try_into().map_err(|_| {
            let missing = needed.iter().filter(|(value, _)| value.is_none());
            let missing: Vec<&str> = missing.map(|(_, what)| *what).collect();
            let missing = missing.join(" and ");
            Error::wrong_input(format!("a checkpoint of {format} needs {missing}"))
                .with_path(self.file.path)
        })
    }
}
