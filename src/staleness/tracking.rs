//! Which files are tracked, and how their paths are resolved.

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
/// A save that records files and a verdict that compares them use the same rules.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tracking {
    /// The project's folder. Nothing outside it is read.
    pub root: PathBuf,
    /// Which files are source files; others are not tracked. The default is that of [`SourceFiles`], plus the
    /// files in `out`.
    pub sources: SourceFiles,
    /// Whether the project's own `.gitignore` files exclude files as well. The default is true. This needs the
    /// feature `ignore`; without it these files are not read.
    pub gitignore: bool,
    /// The file of the checkpoint itself, which changes with every save.
    pub(crate) own: Option<OwnFile>,
}

/// The file that contains the checkpoint, and the layout that names the other files of its protocol.
#[derive(Clone, Debug)]
pub(crate) struct OwnFile {
    pub(crate) path: PathBuf,
    pub(crate) layout: Layout,
    /// Whether its folder is one of checkpoints, each in a file of its own.
    pub(crate) is_in_store: bool,
}

impl Tracking {
    /// The project at `root`; an empty path stands for the current folder.
    pub fn new(root: impl AsRef<Path>) -> Self {
        let mut sources = SourceFiles::default();
        // A step does not record files in `out`, because tools write there. But some sites are built into
        // `out`, so a file there that a checkpoint names is work that may be missing.
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

    /// The project's folder, with `.` for the current one.
    pub(super) fn folder(&self) -> &Path {
        match self.root.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.root,
        }
    }

    /// Sets the file that contains the checkpoint. Neither that file nor its backups are tracked.
    pub(crate) fn of_checkpoint(mut self, path: Option<PathBuf>, layout: Layout) -> Self {
        self.own = path.map(|path| OwnFile {
            path,
            layout,
            is_in_store: false,
        });
        self
    }

    /// Says that the folder of that file is one of checkpoints.
    pub(crate) fn in_store(mut self) -> Self {
        if let Some(own) = &mut self.own {
            own.is_in_store = true;
        }
        self
    }

    /// Splits `paths` into tracked ones, each once, and the rest.
    #[must_use]
    pub fn sort<'p>(&self, paths: impl IntoIterator<Item = &'p str>) -> (Vec<String>, Vec<String>) {
        sort_by(paths, self.tracks())
    }

    /// A predicate that states whether a path is tracked; it inspects each folder once.
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

/// A project, with what is known of its folders; each folder is inspected once.
pub(super) struct Project<'t> {
    tracking: &'t Tracking,
    root: &'t Path,
    /// The real path of the root, resolved only when a link or `..` requires it.
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
    /// It does not exist or cannot be read. Opening the file in it will show the reason.
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

    /// Whether a path is one of the project's source files.
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

    /// Whether files in this folder may be source files. Git does not look into folders that it ignores.
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

    /// Whether a path is the checkpoint's own file, a backup or archive beside it, or in our own folder.
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
        // Most files are not JSON, so they cannot be checkpoints and need no lookup.
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

    /// Whether a path is a file of the store that the checkpoint is in: a checkpoint of another task, or a part of its
    /// database. In the project's own folder a checkpoint is told from other files by the lock that we made for it.
    pub(super) fn is_of_store(&self, path: &str) -> bool {
        let Some(own) = &self.tracking.own else {
            return false;
        };
        let whole = self.root.join(path);
        let names = (whole.file_name(), own.path.file_name());
        let (Some(name), Some(own_name)) = (names.0.and_then(OsStr::to_str), names.1) else {
            return false;
        };
        let is_part = own_name.to_str().is_some_and(|own| name.starts_with(own));
        let is_json = |name: &OsStr| Path::new(name).extension() == Some(OsStr::new("json"));
        if !is_part && !is_json(OsStr::new(name)) {
            return false;
        }
        let folder = |path: &Path| std::fs::canonicalize(fsio::parent_of(path)).ok();
        let here = folder(&whole);
        if here.is_none() || here != folder(&own.path) {
            return false;
        }
        let is_root = here == std::fs::canonicalize(self.root).ok();
        let may_be_checkpoint = own.is_in_store && is_json(own_name) && !is_root;
        let lock = format!("{}.lock", name.to_lowercase());
        let lock = [fsio::OWN_FOLDER, fsio::LOCKS_FOLDER, &lock];
        let lock = fsio::parent_of(&whole).join(lock.iter().collect::<PathBuf>());
        is_part
            || (may_be_checkpoint && (own.layout.role)(name) != FileRole::Foreign)
            || lock.exists()
    }

    /// What is at a path, which must not lead out of the project. A path with `\`, as an agent on Windows
    /// writes it, also finds the file of the same name with `/`.
    pub(super) fn find(&mut self, path: &str) -> Found {
        // The project's folder lies in none of its folders.
        if path.is_empty() {
            return Found::Folder;
        }
        match (self.find_as_written(path), with_slashes(path)) {
            (Found::Missing, Some(slashed)) => self.find_as_written(&slashed),
            (found, _) => found,
        }
    }

    fn find_as_written(&mut self, path: &str) -> Found {
        let mut whole = self.root.join(path);
        if Path::new(path).is_absolute() {
            // An absolute path is allowed if it lies in the project.
            whole = PathBuf::from(path);
            if !whole.starts_with(self.root) && !self.is_inside(&whole) {
                return Found::Outside("it lies outside of the project's folder");
            }
        }
        let climbs = |part: Component<'_>| matches!(part, Component::ParentDir);
        if path.contains("..") && Path::new(path).components().any(climbs) {
            // `a/../b` may lie inside the project; only the file system can resolve `..`, because `a` may be a link.
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
            // A pipe or a device has no contents to compare, and reading one may never end.
            Ok(_) => Found::Unreadable(io::Error::other("it is not a regular file")),
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
            Ok(_) => Found::Unreadable(io::Error::other("it is not a regular file")),
            Err(error) => Found::Unreadable(error),
        }
    }

    fn is_inside(&self, real: &Path) -> bool {
        let root = self
            .real_root
            .get_or_init(|| std::fs::canonicalize(self.root).ok());
        root.as_ref().is_some_and(|root| real.starts_with(root))
    }

    /// Where the folder of a path leads. Each folder is resolved once, since it may hold thousands of files.
    fn folder_of(&mut self, path: &Path) -> Place {
        let Some(folder) = path.parent() else {
            return Place::Inside;
        };
        // Most files lie in the same folder as the file before. Bytes are compared because comparing path
        // components is slower.
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
        // A folder that is no link and lies in a folder inside the project is inside too. This costs one system
        // call, where resolving the whole path costs one for each component.
        let found = matches!(above, Some(Place::Inside)).then(|| std::fs::symlink_metadata(folder));
        let place = match (above, found) {
            (_, Some(Ok(found))) if found.is_dir() => Place::Inside,
            // Nothing exists in a folder that does not exist.
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

/// The path with `/` in place of the `\` of another system; `None` if that changes nothing.
fn with_slashes(path: &str) -> Option<String> {
    (!cfg!(windows) && path.contains('\\')).then(|| path.replace('\\', "/"))
}

/// Whether a path stays inside the project, judged by its text alone.
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
