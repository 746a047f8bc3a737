//! The files that a proof covers: single files, and folders with all source files below them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::stamp::Saved;
use super::tracking::{Found, Project, Tracking};
use super::{FileState, Fingerprint, TrackedFile, state_of};
use crate::checkpoint::{Error, Result};

/// The most files that a proof may cover; each one has a line in its record.
const MOST_FILES: usize = 20_000;

/// Fingerprints of files, and folders with the fingerprints of all source files below them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Covered {
    /// Folders, as paths in the project. A file that appears below one of them counts as a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    folders: Vec<String>,
    files: BTreeMap<String, Fingerprint>,
}

/// The difference between a later list and an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CoveredChange {
    /// All folders of the later list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    folders: Vec<String>,
    /// The files that are new or have another fingerprint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, Fingerprint>,
    /// The files that are no longer covered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
}

impl Covered {
    /// The difference from an earlier list.
    pub(crate) fn change_from(&self, before: &Covered) -> CoveredChange {
        let files = self.not_in(before);
        CoveredChange {
            folders: self.folders.clone(),
            files: files
                .map(|(path, print)| (path.clone(), print.clone()))
                .collect(),
            gone: self.gone_since(before).cloned().collect(),
        }
    }

    /// How many files the difference from an earlier list names.
    pub(crate) fn changes_from(&self, before: &Covered) -> usize {
        self.not_in(before).count() + self.gone_since(before).count()
    }

    /// The files that an earlier list does not have with the same fingerprint.
    fn not_in(&self, before: &Covered) -> impl Iterator<Item = (&String, &Fingerprint)> {
        let files = self.files.iter();
        files.filter(move |(path, print)| before.files.get(*path) != Some(*print))
    }

    /// The files that only an earlier list has.
    fn gone_since<'b>(&self, before: &'b Covered) -> impl Iterator<Item = &'b String> {
        let files = before.files.keys();
        files.filter(move |path| !self.files.contains_key(*path))
    }

    /// The later list.
    pub(crate) fn changed_by(self: &Arc<Covered>, change: CoveredChange) -> Arc<Covered> {
        if change.files.is_empty() && change.gone.is_empty() && change.folders == self.folders {
            return Arc::clone(self);
        }
        let mut later = Covered::clone(self);
        later.folders = change.folders;
        later.files.extend(change.files);
        change
            .gone
            .iter()
            .for_each(|path| drop(later.files.remove(path)));
        Arc::new(later)
    }

    /// How many files it has.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Covers the files and folders that a caller names. All of them must exist. A named file counts even if it
    /// is not a source file; of a folder, only the source files count.
    /// `known` are earlier lists, newest first: a file that did not change since is not hashed again.
    ///
    /// # Errors
    ///
    /// The code `input`, with the path of an input that is missing, lies outside the project, is skipped or
    /// cannot be read.
    pub(crate) fn of_inputs(
        inputs: &[String],
        tracking: &Tracking,
        known: &[&Covered],
    ) -> Result<Covered> {
        let mut covered = Covered::default();
        let mut project = Project::new(tracking);
        for input in inputs {
            let path = in_project(input, &project)?;
            if project.is_own(&path) {
                return Err(refused(
                    input,
                    "is a file of the checkpoint itself, which changes with every save",
                ));
            }
            match project.find(&path) {
                Found::Missing => return Err(refused(input, "is not there")),
                Found::Outside(why) => return Err(refused(input, why)),
                Found::Folder if !project.may_track_in(&path) => {
                    return Err(refused(
                        input,
                        "is a folder without a source file of the project; name its files",
                    ));
                }
                found => covered.add(&path, found, &mut project, known)?,
            }
        }
        Ok(covered)
    }

    /// Covers the source files that a checkpoint names. If one is missing now, its later appearance counts as a
    /// change.
    ///
    /// # Errors
    ///
    /// The code `input`, with the path of a file that cannot be read.
    pub(crate) fn of_files<'f>(
        files: impl IntoIterator<Item = &'f str>,
        tracking: &Tracking,
        known: &[&Covered],
    ) -> Result<Covered> {
        let mut covered = Covered::default();
        let mut project = Project::new(tracking);
        for path in files {
            if project.tracks(path) {
                let found = project.find(path);
                covered.add(path, found, &mut project, known)?;
            }
        }
        Ok(covered)
    }

    /// The paths of the files, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Whether nothing is covered, so that no change can ever be found.
    pub(crate) fn is_nothing(&self) -> bool {
        self.files.is_empty() && self.folders.is_empty()
    }

    /// The files whose contents changed, and those whose contents cannot be compared.
    pub(crate) fn changed(&self, tracking: &Tracking) -> Vec<TrackedFile> {
        let mut project = Project::new(tracking);
        let mut changed = Vec::new();
        let mut add = |path: &str, state: FileState| {
            if !state.is_same() {
                let path = path.to_owned();
                changed.push(TrackedFile { path, state });
            }
        };
        let no_stamp = Saved::new(None, None);
        for (path, print) in &self.files {
            let found = project.find(path);
            add(path, state_of(&found, Some(print), &no_stamp, None));
        }
        for folder in &self.folders {
            match project.find(folder) {
                Found::Folder => {}
                Found::Missing => {
                    add(folder, FileState::Missing);
                    continue;
                }
                _ => {
                    let by = "something else".to_owned();
                    add(folder, FileState::Replaced { by });
                    continue;
                }
            }
            match files_in(folder, &mut project) {
                Ok(files) => files
                    .iter()
                    .filter(|file| !self.files.contains_key(*file))
                    .for_each(|file| add(file, FileState::Appeared)),
                Err(error) => {
                    let reason = error.to_string();
                    add(folder, FileState::Unreadable { reason });
                }
            }
        }
        changed
    }

    fn add(
        &mut self,
        path: &str,
        found: Found,
        project: &mut Project<'_>,
        known: &[&Covered],
    ) -> Result<()> {
        match found {
            Found::Folder => {
                let folder = path.trim_end_matches('/').to_owned();
                for file in files_in(&folder, project)? {
                    let found = project.find(&file);
                    if !matches!(found, Found::Folder) {
                        self.add(&file, found, project, known)?;
                    }
                }
                if !self.folders.contains(&folder) {
                    self.folders.push(folder);
                }
            }
            Found::Outside(_) => {}
            found => {
                // A file that surely did not change since an earlier proof keeps its fingerprint.
                let before = known.iter().find_map(|known| known.files.get(path));
                let before = before.filter(|before| matches!(before, Fingerprint::File(_)));
                let is_there = matches!(found, Found::File(..));
                let print = match Fingerprint::take(found, before.filter(|_| is_there)) {
                    Fingerprint::File(print) => Fingerprint::File(print.with_doubt()),
                    Fingerprint::NeverThere => Fingerprint::Missing,
                    Fingerprint::Unknown => return Err(refused(path, "cannot be read")),
                    other => other,
                };
                self.files.insert(path.to_owned(), print);
            }
        }
        if self.files.len() > MOST_FILES {
            return Err(too_many(path));
        }
        Ok(())
    }
}

/// The path of an input relative to the project, normalized.
fn in_project(input: &str, project: &Project<'_>) -> Result<String> {
    let path = Path::new(input);
    let climbs = path.components().any(|part| part == Component::ParentDir);
    let plain: PathBuf = if path.is_absolute() || climbs {
        let real = |path: &Path| fs::canonicalize(path);
        let whole = real(&project.root().join(path));
        let whole = whole.map_err(|error| match super::is_missing(&error) {
            true => refused(input, "is not there"),
            false => refused(input, &error.to_string()),
        })?;
        let root = real(project.root()).map_err(|error| refused(input, &error.to_string()))?;
        match whole.strip_prefix(root) {
            Ok(inside) => inside.to_owned(),
            Err(_) => return Err(refused(input, "lies outside of the project's folder")),
        }
    } else {
        path.components()
            .filter(|part| *part != Component::CurDir)
            .collect()
    };
    let parts = plain.iter().map(|part| part.to_str());
    let parts: Option<Vec<&str>> = parts.collect();
    Ok(parts
        .ok_or_else(|| refused(input, "has a name that is not UTF-8"))?
        .join("/"))
}

/// The source files below a folder. Links that stay within the project are followed. Files of
/// the store are skipped, because each save of any task changes them.
fn files_in(folder: &str, project: &mut Project<'_>) -> Result<Vec<String>> {
    let mut files = Vec::new();
    walk(folder, project, &mut (Vec::new(), 0), &mut files)?;
    Ok(files)
}

/// Adds the source files below a folder. `above` holds the real paths of the folders above it, and how many
/// folders were walked: links can lead to the same folder in very many ways.
fn walk(
    folder: &str,
    project: &mut Project<'_>,
    above: &mut (Vec<PathBuf>, usize),
    files: &mut Vec<String>,
) -> Result<()> {
    let unreadable = |error: io::Error| refused(folder, &error.to_string());
    let whole = project.root().join(folder);
    let real = fs::canonicalize(&whole).map_err(unreadable)?;
    // A link to a folder above it leads to nothing new.
    if above.0.contains(&real) {
        return Ok(());
    }
    above.0.push(real);
    above.1 += 1;
    if above.1 > MOST_FILES {
        return Err(too_many(folder));
    }
    for entry in fs::read_dir(&whole).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            let name = name.to_string_lossy();
            return Err(refused(
                folder,
                &format!("has a file whose name is no UTF-8: {name}; name the others"),
            ));
        };
        let path = match folder {
            "" => name.to_owned(),
            folder => format!("{folder}/{name}"),
        };
        let kind = entry.file_type().map_err(unreadable)?;
        let leads_to = kind.is_symlink().then(|| project.find(&path));
        let is_folder = kind.is_dir() || matches!(leads_to, Some(Found::Folder));
        // A link that leads nowhere now may have a target later.
        let is_file = kind.is_file() || matches!(leads_to, Some(Found::File(..) | Found::Missing));
        if is_folder && project.may_track_in(&path) {
            walk(&path, project, above, files)?;
        } else if is_file && project.tracks(&path) && !project.is_of_store(&path) {
            files.push(path);
        }
        if files.len() > MOST_FILES {
            return Err(too_many(folder));
        }
    }
    above.0.pop();
    Ok(())
}

fn refused(path: &str, why: &str) -> Error {
    Error::other("input", format!("the input {} {why}", crate::quoted(path)))
}

fn too_many(path: &str) -> Error {
    refused(
        path,
        &format!("makes more than {MOST_FILES} files or folders; name fewer"),
    )
}
