//! Files that could not be read, of which nobody can say at once whether they are checkpoints.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::scan::Scan;
use super::{Place, Row, RowState, WhyLeftOut, bounded};
use crate::checkpoint::{Error, ErrorKind, FileRole};
use crate::formats::Format;
use crate::fsio;
use crate::json::CorruptCode;

/// How long after a corrupt reading a file is read again.
pub(super) const SECOND_LOOK: Duration = Duration::from_millis(20);

/// A file that was last written longer ago than this is not just being written.
const AT_REST: Duration = Duration::from_millis(250);

/// How often files are read again that look corrupt and are just being written.
pub(super) const LOOKS: usize = 25;

/// A file that could not be read.
pub(super) struct Doubt {
    pub(super) path: PathBuf,
    error: Error,
}

impl Doubt {
    pub(super) fn new(path: &Path, error: Error) -> Doubt {
        Doubt {
            path: path.to_path_buf(),
            error,
        }
    }

    /// Whether another look may find a whole file.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self.error.kind(), ErrorKind::Corrupt(_))
    }

    /// The same after a second look: only where it is just being written.
    pub(super) fn is_being_written(&self) -> bool {
        let found = fsio::look(&self.path).ok().flatten();
        let written = found.and_then(|found| found.modified().ok());
        let age = written.and_then(|written| written.elapsed().ok());
        self.may_pass() && age.is_some_and(|age| age < AT_REST)
    }

    fn state(&self) -> RowState {
        let reason = bounded::text(&self.error.to_string());
        match self.error.kind() {
            ErrorKind::Corrupt(_) | ErrorKind::TooLarge { .. } => RowState::Corrupt { reason },
            _ => RowState::Unreadable { reason },
        }
    }

    /// Whether a crash leaves such a file. What only breaks a rule of JSON may be a settings file with
    /// comments, or a list.
    fn looks_torn(&self) -> bool {
        let torn = [
            CorruptCode::Empty,
            CorruptCode::NulBytes,
            CorruptCode::Truncated,
        ];
        match self.error.kind() {
            ErrorKind::Corrupt(corrupt) => torn.contains(&corrupt.code),
            ErrorKind::TooLarge { .. } => false,
            _ => true,
        }
    }
}

impl Scan<'_> {
    /// A file that cannot be read is a row where anything speaks for its being a checkpoint: its format is
    /// named, its path or what is left of it tells a format, there are checkpoints beside it, or a crash
    /// leaves such a file. Else it is listed as no document.
    pub(super) fn doubt(&mut self, doubt: Doubt, has_checkpoints: bool) {
        // What is no checkpoint is none beside checkpoints either.
        let Ok(format) = self.format_of_damaged(&doubt) else {
            return self.leave_out(doubt.path.display(), WhyLeftOut::NoDocument);
        };
        if let Some(format) = format
            && is_archive(&doubt.path, &format)
        {
            return self.leave_out(doubt.path.display(), WhyLeftOut::Archive);
        }
        if format.is_none() && !has_checkpoints && !doubt.looks_torn() {
            return self.leave_out(doubt.path.display(), WhyLeftOut::NoDocument);
        }
        let mut row = Row::new(Place::file(&doubt.path), doubt.state());
        row.format = format.map(|format| format.name);
        self.push(row);
    }

    /// The format that the good part of a damaged file tells, or its path.
    fn format_of_damaged(&self, doubt: &Doubt) -> Result<Option<Format>, Error> {
        let formats = &self.options.formats;
        if let Some(name) = &self.options.format {
            return Ok(formats.get(name).ok().copied());
        }
        let path = &doubt.path;
        let ErrorKind::Corrupt(cause) = doubt.error.kind() else {
            return Ok(formats.detect(path, None).ok().map(|found| found.format));
        };
        let Ok(Some(contents)) = fsio::read_limited(path, self.options.max_bytes) else {
            return Ok(None);
        };
        let found = formats.detect_damaged(path, &contents.bytes, cause)?;
        Ok(found.map(|found| found.format))
    }
}

fn is_archive(path: &Path, format: &Format) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| ((format.layout)().role)(name) == FileRole::Archive)
}
