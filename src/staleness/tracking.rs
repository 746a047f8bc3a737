//! Which files are tracked, and where they are.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::checkpoint::{FileRole, Layout, SourceFiles, sort_by};
use crate::fsio;

/// The project whose files are tracked.
///
/// The same rules hold when a save records the files and when they are judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tracking {
    /// The project's folder. Nothing outside of it is read.
    pub root: PathBuf,
    /// Which files are source files; others are not tracked. Default those of [`SourceFiles`], and what lies in
    /// `out`.
    pub sources: SourceFiles,
    /// Whether the project's own `.gitignore` files count besides. Default true; it takes the feature
    /// `ignore`, without which they are not read.
    pub gitignore: bool,
    /// The file of the checkpoint itself, which changes with every save.
    pub(crate) own: Option<OwnFile>,
}

/// The file that a checkpoint is in, with the names of its protocol's other files.
#[derive(Clone, Debug)]
pub(crate) struct OwnFile {
    pub(crate) path: PathBuf,
    pub(crate) layout: Layout,
}

impl Tracking {
    /// The project at `root`; empty stands for the current folder.
    pub fn new(root: impl AsRef<Path>) -> Self {
        let mut sources = SourceFiles::default();
        // A step does not record what a tool put there; but a site is built there, and what a checkpoint names of
        // it all the same is work that may be missing.
        sources.left_out_folders.retain(|folder| folder != "out");
        Tracking {
            root: root.as_ref().to_path_buf(),
            sources,
            gitignore: true,
            own: None,
        }
    }

    /// Sets which files are source files.
    #[must_use]
    pub fn with_sources(mut self, sources: SourceFiles) -> Self {
        self.sources = sources;
        self
    }

    /// The project's folder, also where it is the current one.
    pub(super) fn folder(&self) -> &Path {
        match self.root.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.root,
        }
    }

    /// Says which file the checkpoint itself is in: neither that one nor its backups are tracked.
    pub(crate) fn of_checkpoint(mut self, path: Option<PathBuf>, layout: Layout) -> Self {
        self.own = path.map(|path| OwnFile { path, layout });
        self
    }

    /// `paths` that are tracked, each once, and the rest.
    #[must_use]
    pub fn sort<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> (Vec<String>, Vec<String>) {
        sort_by(paths, self.tracks())
    }

    /// Says of one path after the other whether it is tracked; looks at each folder once.
    pub(crate) fn tracks(&self) -> impl FnMut(&str) -> bool {
        let mut project = Project::new(self);
        move |path| project.tracks(path)
    }

    /// Does not read `.gitignore` files.
    #[must_use]
    pub fn without_gitignore(mut self) -> Self {
        self.gitignore = false;
        self
    }
}

/// A project whose folders were looked at, each once.
pub(super) struct Project<'t> {
    tracking: &'t Tracking,
    root: &'t Path,
    /// Where the root really is, once a link or `..` makes that matter.
    real_root: OnceCell<Option<PathBuf>>,
    folders: HashMap<PathBuf, Place>,
    last_folder: Option<(OsString, Place)>,
    #[cfg(feature = "ignore")]
    ignored: super::ignored::Ignored,
}

/// Where a folder leads.
#[derive(Clone, Copy)]
enum Place {
    Inside,
    Outside,
    /// It is not there, or cannot be looked at: what is in it tells so itself.
    Unknown,
}

/// What is at a tracked path.
pub(super) enum Found {
    File(PathBuf, Metadata),
    Folder,
    Missing,
    Outside(&'static str),
    Unreadable(io::Error),
}

impl<'t> Project<'t> {
    pub(super) fn new(tracking: &'t Tracking) -> Self {
        let root = tracking.folder();
        Project {
            real_root: OnceCell::new(),
            #[cfg(feature = "ignore")]
            ignored: super::ignored::Ignored::new(root),
            root,
            tracking,
            folders: HashMap::new(),
            last_folder: None,
        }
    }

    pub(super) fn root(&self) -> &Path {
        self.root
    }

    /// Whether a path is one of the project's sources.
    pub(super) fn tracks(&mut self, path: &str) -> bool {
        let slashed = with_slashes(path);
        let path = slashed.as_deref().unwrap_or(path);
        if !self.tracking.sources.takes(path) || self.is_own(path) {
            return false;
        }
        #[cfg(feature = "ignore")]
        if self.tracking.gitignore && self.ignored.is_ignored(path, false) {
            return false;
        }
        true
    }

    /// Whether files in this folder may be the project's sources: git looks into no folder that it ignores.
    pub(super) fn may_track_in(&mut self, folder: &str) -> bool {
        if folder.is_empty() {
            return true;
        }
        let file_in_it = format!("{folder}/x");
        if !self.tracking.sources.takes(&file_in_it) || self.is_own(folder) {
            return false;
        }
        #[cfg(feature = "ignore")]
        if self.tracking.gitignore && self.ignored.is_ignored(folder, true) {
            return false;
        }
        true
    }

    /// Whether a path is the checkpoint's own file, a backup or an archive beside it, or in our folder.
    pub(super) fn is_own(&self, path: &str) -> bool {
        let may_be_ours = path.contains(fsio::OWN_FOLDER);
        let path = Path::new(path);
        if may_be_ours
            && path
                .components()
                .any(|part| part.as_os_str() == fsio::OWN_FOLDER)
        {
            return true;
        }
        let own = self.tracking.own.as_ref();
        // Most files are no checkpoints: nothing is looked up for those.
        let Some(own) = own.filter(|_| path.extension() == Some(OsStr::new("json"))) else {
            return false;
        };
        let whole = self.root.join(path);
        let Ok(of_checkpoint) = std::fs::canonicalize(&own.path) else {
            return false;
        };
        if std::fs::canonicalize(&whole).is_ok_and(|real| real == of_checkpoint) {
            return true;
        }
        let name = whole
            .file_name()
            .and_then(OsStr::to_str)
            .unwrap_or_default();
        let folder = std::fs::canonicalize(fsio::parent_of(&whole)).ok();
        let Some(folder) = folder.filter(|_| (own.layout.role)(name) == FileRole::Archive) else {
            return false;
        };
        let here = fsio::parent_of(&of_checkpoint);
        let backups = own.layout.backups.map(|backups| here.join(backups.folder));
        folder == here || Some(folder) == backups
    }

    /// What is at a path, which may not lead out of the project. One that an agent on Windows wrote is the file
    /// of the same name with `/`, where that is there.
    pub(super) fn find(&mut self, path: &str) -> Found {
        match (self.find_as_written(path), with_slashes(path)) {
            (Found::Missing, Some(slashed)) => self.find_as_written(&slashed),
            (found, _) => found,
        }
    }

    fn find_as_written(&mut self, path: &str) -> Found {
        let mut whole = self.root.join(path);
        if Path::new(path).is_absolute() {
            // What lies in the project may be named from the top.
            whole = PathBuf::from(path);
            if !whole.starts_with(self.root) && !self.is_inside(&whole) {
                return Found::Outside("it lies outside of the project's folder");
            }
        }
        let climbs = |part: Component<'_>| matches!(part, Component::ParentDir);
        if path.contains("..") && Path::new(path).components().any(climbs) {
            // `a/../b` lies inside, and only the file system can say where `..` leads.
            match std::fs::canonicalize(&whole) {
                Ok(real) if self.is_inside(&real) => whole = real,
                Ok(_) => return Found::Outside("it lies outside of the project's folder"),
                Err(error) if super::is_missing(&error) => {
                    return match lexically_inside(path) {
                        true => Found::Missing,
                        false => Found::Outside("it lies outside of the project's folder"),
                    };
                }
                Err(error) => return Found::Unreadable(error),
            }
        }
        if let Place::Outside = self.folder_of(&whole) {
            return Found::Outside("a symbolic link leads out of the project's folder");
        }
        match std::fs::symlink_metadata(&whole) {
            Ok(found) if found.is_symlink() => self.through(&whole),
            Ok(found) if found.is_file() => Found::File(whole, found),
            Ok(found) if found.is_dir() => Found::Folder,
            // A pipe or a device has no contents that could be compared, and reading one may not end.
            Ok(_) => Found::Unreadable(io::Error::other("it is no regular file")),
            Err(error) if super::is_missing(&error) => Found::Missing,
            Err(error) => Found::Unreadable(error),
        }
    }

    fn through(&self, link: &Path) -> Found {
        let real = match std::fs::canonicalize(link) {
            Ok(real) => real,
            Err(error) if super::is_missing(&error) => return Found::Missing,
            Err(error) => return Found::Unreadable(error),
        };
        if !self.is_inside(&real) {
            return Found::Outside("a symbolic link leads out of the project's folder");
        }
        match std::fs::metadata(&real) {
            Ok(found) if found.is_file() => Found::File(real, found),
            Ok(found) if found.is_dir() => Found::Folder,
            Ok(_) => Found::Unreadable(io::Error::other("it is no regular file")),
            Err(error) => Found::Unreadable(error),
        }
    }

    fn is_inside(&self, real: &Path) -> bool {
        let root = self
            .real_root
            .get_or_init(|| std::fs::canonicalize(self.root).ok());
        root.as_ref().is_some_and(|root| real.starts_with(root))
    }

    /// Where the folder of a path leads; each is looked at once, for thousands of files may be in it.
    fn folder_of(&mut self, path: &Path) -> Place {
        let Some(folder) = path.parent() else {
            return Place::Inside;
        };
        // Most files lie in the folder of the one before. The bytes are compared: parts of a path take longer.
        if let Some((last, place)) = &self.last_folder
            && last == folder.as_os_str()
        {
            return *place;
        }
        let place = self.place_of(folder);
        self.last_folder = Some((folder.as_os_str().to_owned(), place));
        place
    }

    fn place_of(&mut self, folder: &Path) -> Place {
        if folder == self.root {
            return Place::Inside;
        }
        if let Some(place) = self.folders.get(folder) {
            return *place;
        }
        let parent = folder
            .parent()
            .filter(|parent| parent.starts_with(self.root));
        let above = parent.map(|parent| self.place_of(parent));
        // What is no link, in a folder inside, is inside: one look where the whole path would take one for each part.
        let found = matches!(above, Some(Place::Inside)).then(|| std::fs::symlink_metadata(folder));
        let place = match (above, found) {
            (_, Some(Ok(found))) if found.is_dir() => Place::Inside,
            // Nor is anything in a folder that is not there.
            (Some(Place::Unknown), _) | (_, Some(Err(_))) => Place::Unknown,
            _ => match std::fs::canonicalize(folder) {
                Ok(real) if self.is_inside(&real) => Place::Inside,
                Ok(_) => Place::Outside,
                Err(_) => Place::Unknown,
            },
        };
        self.folders.insert(folder.to_path_buf(), place);
        place
    }
}

/// A path with `\` as the separator of other systems has it; `None` where nothing changes.
fn with_slashes(path: &str) -> Option<String> {
    (!cfg!(windows) && path.contains('\\')).then(|| path.replace('\\', "/"))
}

/// Whether a path stays inside as far as its words tell.
fn lexically_inside(path: &str) -> bool {
    let mut depth = 0_i64;
    Path::new(path).components().all(|part| {
        depth += match part {
            Component::ParentDir => -1,
            Component::Normal(_) => 1,
            _ => 0,
        };
        depth >= 0
    })
}
