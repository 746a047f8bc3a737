//! A folder with its sub-folders, one file at a time.

use std::fs::FileType;
use std::path::{Path, PathBuf};

use super::doubt::Doubt;
use super::pairs::Copy;
use super::scan::Scan;
use super::survey::Found;
use super::{Place, Row, RowState, WhyLeftOut, WhyNotScanned, claims};
use crate::checkpoint::{Checkpoint, Error, FileRole, Layout, read};
use crate::formats::builder_state;
use crate::formats::{Format, PipelineState};
use crate::fsio;
use crate::json::Document;
use crate::staleness::Checkout;

/// What is known of the folder that is looked at.
#[derive(Default)]
pub(super) struct Surroundings {
    /// The state of the pipeline whose stories lie here.
    pub(super) pipeline: Option<Box<PipelineState>>,
    /// Whether a store keeps anything here beside the checkpoints: claims, history.
    pub(super) has_store: bool,
    /// The checkout of a repository that this is in.
    checkout: Option<Checkout>,
    /// Whether something here is a checkpoint, so that what cannot be read may be one as well.
    has_checkpoints: bool,
    doubts: Vec<Doubt>,
}

impl Surroundings {
    /// By what a checkpoint here is known in every checkout of its repository.
    pub(super) fn copy_of(&self, path: &Path, slot: &str) -> Option<Copy> {
        let checkout = self.checkout.as_ref()?;
        let folder = std::fs::canonicalize(fsio::parent_of(path)).ok()?;
        let file = folder
            .strip_prefix(&checkout.top)
            .ok()?
            .join(path.file_name()?);
        Some((checkout.common.clone(), file, slot.to_owned()))
    }
}

impl Scan<'_> {
    /// A folder, or one file, that was named.
    pub(super) fn place(&mut self, path: &Path) {
        match std::fs::metadata(path) {
            Err(error) => self.skip(path, WhyNotScanned::Unreadable(error.to_string())),
            Ok(found) if found.is_dir() => self.folder(path, 0),
            Ok(_) => {
                let mut around = self.surroundings(fsio::parent_of(path));
                // Whoever names a file says that it is a checkpoint.
                around.has_checkpoints = true;
                self.file(path, &mut around);
                self.look_again(around);
            }
        }
    }

    fn folder(&mut self, folder: &Path, depth: usize) {
        let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
        if !self.visited.insert(real) {
            return;
        }
        let entries = match fsio::list(folder) {
            Ok(entries) => entries,
            Err(error) => {
                // What the system said: the error itself names the folder once more, and gives advice of its own.
                let source = std::error::Error::source(&error);
                let reason = source.map_or_else(|| error.to_string(), ToString::to_string);
                return self.skip(folder, WhyNotScanned::Unreadable(reason));
            }
        };
        let mut entries: Vec<(PathBuf, FileType)> = entries
            .into_iter()
            .filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)))
            .filter(|(path, kind)| !kind.is_file() || is_json(path))
            .collect();
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        let mut around = self.surroundings(folder);
        for (path, kind) in &entries {
            if kind.is_file() {
                self.file(path, &mut around);
            } else if !kind.is_dir() && is_json(path) {
                self.leave_out(path.display(), odd_file(*kind));
            }
        }
        if around.has_store {
            self.claims_alone(folder);
        }
        self.look_again(around);
        for (path, kind) in entries {
            if kind.is_dir() {
                self.sub_folder(&path, depth);
            } else if kind.is_symlink() && path.is_dir() {
                self.skip(path, WhyNotScanned::Link);
            }
        }
    }

    fn sub_folder(&mut self, path: &Path, depth: usize) {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        if name == fsio::OWN_FOLDER {
            // Locks, history and records of ours: no checkpoints of their own.
        } else if self.options.ignored.iter().any(|ignored| ignored == name) {
            self.skip(path, WhyNotScanned::Ignored);
        } else if depth == self.options.depth {
            self.skip(path, WhyNotScanned::TooDeep);
        } else {
            self.folder(path, depth + 1);
        }
    }

    fn surroundings(&self, folder: &Path) -> Surroundings {
        let own = folder.join(fsio::OWN_FOLDER);
        Surroundings {
            pipeline: self.pipeline(folder),
            has_store: own.is_dir(),
            checkout: Checkout::of(folder),
            has_checkpoints: own.is_dir(),
            doubts: Vec::new(),
        }
    }

    /// The state of the pipeline in a folder, which its stories are judged with.
    fn pipeline(&self, folder: &Path) -> Option<Box<PipelineState>> {
        let path = folder.join("state.json");
        // Where there is none, this is one look.
        let document = self.read(&path).ok()??;
        let format = self.format_of(&path, &document).ok()?;
        (format.name == PipelineState::FORMAT).then_some(())?;
        Some(Box::new(
            read::<PipelineState>(&document).ok()?.reading.value,
        ))
    }

    pub(super) fn read(&self, path: &Path) -> Result<Option<Document>, Error> {
        let Some(contents) = fsio::read_limited(path, self.options.max_bytes)? else {
            return Ok(None);
        };
        Ok(Some(Document::parse(&contents.bytes)?))
    }

    /// The format of a document: as named, else as detected.
    pub(super) fn format_of(&self, path: &Path, document: &Document) -> Result<Format, Error> {
        let formats = &self.options.formats;
        match &self.options.format {
            Some(name) => formats.get(name).copied(),
            None => formats
                .detect(path, Some(document))
                .map(|found| found.format),
        }
    }

    /// One file: a row, rows of its slots, or left out.
    fn file(&mut self, path: &Path, around: &mut Surroundings) {
        match self.read(path) {
            Ok(Some(document)) => self.document(path, &document, around),
            // Gone since the folder was listed.
            Ok(None) => {}
            Err(error) => around.doubts.push(Doubt::new(path, error)),
        }
    }

    fn document(&mut self, path: &Path, document: &Document, around: &mut Surroundings) {
        let format = match self.format_of(path, document) {
            Ok(format) => format,
            Err(error) if matches!(error.kind(), crate::ErrorKind::UnknownFormat { .. }) => {
                return self.leave_out(path.display(), WhyLeftOut::Foreign);
            }
            Err(error) => {
                // Two formats fit equally well: it is a checkpoint, and nobody can say of which.
                let reason = super::bounded::text(&error.to_string());
                let row = Row::new(Place::file(path), RowState::Unreadable { reason });
                self.push(row);
                return;
            }
        };
        around.has_checkpoints = true;
        if format.name == builder_state::FORMAT {
            return self.host(path, document, &format, around);
        }
        let layout = (format.layout)();
        let role = role(path, document, &layout);
        if role == Some(FileRole::Archive) {
            return self.leave_out(path.display(), WhyLeftOut::Archive);
        }
        let mut found = Found::in_file(path, document, format, layout, role);
        found.copy = around.copy_of(path, "");
        let beside = |scan: &mut Self, key: &_, present: &claims::Present<'_>| {
            if around.has_store {
                claims::of_file(path, layout, key, present, scan)
            } else {
                present.without_store()
            }
        };
        self.checkpoint(found, around.pipeline.as_deref(), beside);
    }

    /// What could not be read is looked at once more, and while it is just being written again; then it is a row or
    /// left out.
    fn look_again(&mut self, mut around: Surroundings) {
        let mut may_pass: fn(&Doubt) -> bool = Doubt::may_pass;
        for _ in 0..super::doubt::LOOKS {
            if !around.doubts.iter().any(may_pass) {
                break;
            }
            // Some programs cut a file and fill it again in place: one wait for all files of the folder.
            std::thread::sleep(super::doubt::SECOND_LOOK);
            for doubt in std::mem::take(&mut around.doubts) {
                if may_pass(&doubt) {
                    self.file(&doubt.path, &mut around);
                } else {
                    around.doubts.push(doubt);
                }
            }
            may_pass = Doubt::is_being_written;
        }
        for doubt in around.doubts {
            self.doubt(doubt, around.has_checkpoints);
        }
    }
}

fn is_json(path: &Path) -> bool {
    // Not by its extension: a file may be called `.json`, as one of a key that was empty.
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().ends_with(b".json")
}

fn odd_file(kind: FileType) -> WhyLeftOut {
    if kind.is_symlink() {
        WhyLeftOut::Link
    } else {
        WhyLeftOut::NotAFile
    }
}

/// What a file is by its name; but one that bears its own id as its name is no archive, although the id
/// reads like one.
fn role(path: &Path, document: &Document, layout: &Layout) -> Option<FileRole> {
    let name = path.file_name()?.to_str()?;
    let role = (layout.role)(name);
    if role == FileRole::Archive
        && let Some(id) = layout.key_in.and_then(|key_in| key_in(document))
        && (Layout::default().file_name)(&id).is_ok_and(|own| own == name)
    {
        return Some(FileRole::Current(None));
    }
    Some(role)
}
