//! A model of a file system that promises only what the standard promises.
//!
//! It knows the state that every program sees now, and the states that a power loss may leave:
//!
//! - The contents of a file are durable once it is synced. Until then a crash leaves, of everything written since:
//!   nothing, a part of a write, zeros in its place, or all of it. A write may be there although an earlier one is not.
//! - A name is durable once its folder is synced. Until then a crash leaves any subset of the changes of names since,
//!   in any order, but changes of one name keep their order. A rename within a folder happens as a whole or not at all.
//!   If a folder's own name is lost, its content is lost, too.
//! - Syncing a file does not sync its name, and syncing a folder does not sync the contents of its files.
//!
//! Not modelled: modes, owners and times of folders. A changed time may be lost alone. Renames from one folder to
//! another are refused, because no code here makes them.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::step::Step;
use super::tree::{Content, Node, Tree};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Target {
    Folder(usize),
    File(usize),
}

type Names = BTreeMap<OsString, Target>;

/// A change of names that is not on the disk yet.
#[derive(Clone, Debug)]
enum Change {
    Set(OsString, Target),
    Remove(OsString),
    Rename(OsString, OsString, Target),
}

impl Change {
    fn names(&self) -> [&OsString; 2] {
        match self {
            Change::Set(name, _) | Change::Remove(name) => [name, name],
            Change::Rename(from, to, _) => [from, to],
        }
    }

    fn touches(&self, other: &Change) -> bool {
        self.names().iter().any(|name| other.names().contains(name))
    }

    fn apply(&self, names: &mut Names) {
        match self {
            Change::Set(name, target) => {
                names.insert(name.clone(), *target);
            }
            Change::Remove(name) => {
                names.remove(name);
            }
            Change::Rename(from, to, target) => {
                names.remove(from);
                names.insert(to.clone(), *target);
            }
        }
    }
}

#[derive(Clone, Default)]
struct Folder {
    durable: Names,
    live: Names,
    pending: Vec<Change>,
}

#[derive(Clone)]
struct File {
    /// The content that is surely on disk.
    durable: Content,
    live: Content,
    /// All possible contents after a crash: `durable` first, `live` last.
    possible: Vec<Content>,
}

impl File {
    fn becomes(&mut self, content: Content) {
        // The last one stays last: it is the state in which nothing is lost.
        self.possible.retain(|known| *known != content);
        self.possible.push(content.clone());
        self.live = content;
    }
}

/// A disk, and the changes that are not on it yet.
#[derive(Clone)]
pub(crate) struct Disk {
    folders: Vec<Folder>,
    files: Vec<File>,
    clock: SystemTime,
}

const ROOT: usize = 0;

/// How thoroughly the contents of unsynced files are varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// One file at a time has any of its possible contents, while all others are complete, and while all others have
    /// lost their unsynced writes. Not explored: two torn files at once, or one lost and one complete file beside a
    /// torn one.
    Single,
    /// The same, after only a part of the calls, like other tests; after all calls in continuous integration.
    Part,
    /// Every combination.
    Full,
}

impl Disk {
    /// A disk on which everything has arrived.
    pub(crate) fn of(tree: &Tree) -> Disk {
        let mut disk = Disk {
            folders: vec![Folder::default()],
            files: Vec::new(),
            clock: tree
                .files
                .iter()
                .map(|file| file.time)
                .max()
                .unwrap_or(SystemTime::UNIX_EPOCH),
        };
        for content in &tree.files {
            disk.new_file(content.clone());
        }
        for (path, node) in &tree.names {
            let target = match node {
                Node::File(number) => Target::File(*number),
                Node::Folder => disk.new_folder(),
            };
            disk.change(path, |name| Change::Set(name, target));
        }
        for folder in 0..disk.folders.len() {
            disk.sync_folder(folder);
        }
        disk
    }

    fn new_file(&mut self, content: Content) -> Target {
        self.files.push(File {
            durable: content.clone(),
            live: content.clone(),
            possible: vec![content],
        });
        Target::File(self.files.len() - 1)
    }

    fn new_folder(&mut self) -> Target {
        self.folders.push(Folder::default());
        Target::Folder(self.folders.len() - 1)
    }

    fn find(&self, path: &Path) -> Option<Target> {
        let mut at = Target::Folder(ROOT);
        for part in path {
            let Target::Folder(folder) = at else {
                return None;
            };
            at = *self.folders[folder].live.get(part)?;
        }
        Some(at)
    }

    fn folder(&self, path: &Path) -> usize {
        match self.find(path) {
            Some(Target::Folder(folder)) => folder,
            other => panic!("{} is no folder but {other:?}", path.display()),
        }
    }

    fn file(&mut self, path: &Path) -> &mut File {
        match self.find(path) {
            Some(Target::File(file)) => &mut self.files[file],
            other => panic!("{} is no file but {other:?}", path.display()),
        }
    }

    fn change(&mut self, path: &Path, change: impl FnOnce(OsString) -> Change) {
        let folder = self.folder(path.parent().unwrap());
        let change = change(path.file_name().unwrap().to_owned());
        let folder = &mut self.folders[folder];
        change.apply(&mut folder.live);
        folder.pending.push(change);
    }

    fn sync_folder(&mut self, folder: usize) {
        let folder = &mut self.folders[folder];
        folder.pending.clear();
        folder.durable = folder.live.clone();
    }

    /// Applies a step.
    pub(crate) fn apply(&mut self, step: &Step) {
        self.clock += Duration::from_millis(1);
        let time = self.clock;
        match step {
            Step::Create(path) => {
                if self.find(path).is_none() {
                    let bytes = Arc::from([]);
                    let target = self.new_file(Content { bytes, time });
                    self.change(path, |name| Change::Set(name, target));
                }
            }
            Step::Cut(path, length) => {
                let file = self.file(path);
                let bytes = Arc::from(&file.live.bytes[..usize::try_from(*length).unwrap()]);
                file.becomes(Content { bytes, time });
            }
            Step::Write(path, at, bytes) => {
                let file = self.file(path);
                let at = at.map_or(file.live.bytes.len(), |at| usize::try_from(at).unwrap());
                let half = &bytes[..bytes.len() / 2];
                let zeros = vec![0; bytes.len()];
                let variants = [
                    over(&file.live.bytes, at, half),
                    over(&file.live.bytes, at, &zeros),
                    // The write is there, but the ones before it are not.
                    over(&file.durable.bytes, at, bytes),
                    over(&file.live.bytes, at, bytes),
                ];
                for bytes in variants {
                    file.becomes(Content { bytes, time });
                }
            }
            Step::SetTime { of, to } => {
                let time = self.file(of).live.time;
                let file = self.file(to);
                let bytes = file.live.bytes.clone();
                file.becomes(Content { bytes, time });
            }
            Step::Sync(path) => {
                let file = self.file(path);
                file.durable = file.live.clone();
                file.possible = vec![file.live.clone()];
            }
            Step::SyncFolder(path) => self.sync_folder(self.folder(path)),
            Step::CreateFolder(path) => {
                let target = self.new_folder();
                self.change(path, |name| Change::Set(name, target));
            }
            Step::Link { from, to } => {
                let target = self.find(from).unwrap();
                self.change(to, |name| Change::Set(name, target));
            }
            Step::Rename { from, to } => {
                assert_eq!(from.parent(), to.parent(), "not modelled");
                let target = self.find(from).unwrap();
                let from = from.file_name().unwrap().to_owned();
                self.change(to, |name| Change::Rename(from, name, target));
            }
            Step::Remove(path) => self.change(path, Change::Remove),
            Step::Acknowledged => {}
        }
    }

    /// The tree that every program sees now.
    pub(crate) fn live(&self) -> Tree {
        let names = self.names_of(ROOT, &|folder| &folder.live);
        self.tree(&names, |file| &file.live)
    }

    fn names_of(&self, folder: usize, which: &dyn Fn(&Folder) -> &Names) -> Paths {
        let mut paths = Paths::new();
        for (name, target) in which(&self.folders[folder]) {
            let name = PathBuf::from(name);
            if let Target::Folder(inner) = target {
                for (path, target) in self.names_of(*inner, which) {
                    paths.insert(name.join(path), target);
                }
            }
            paths.insert(name, *target);
        }
        paths
    }

    fn tree<'d>(&'d self, paths: &Paths, which: impl Fn(&'d File) -> &'d Content) -> Tree {
        let mut tree = Tree::default();
        let mut numbers = BTreeMap::new();
        for (path, target) in paths {
            let node = match target {
                Target::Folder(_) => Node::Folder,
                Target::File(file) => Node::File(*numbers.entry(*file).or_insert_with(|| {
                    tree.files.push(which(&self.files[*file]).clone());
                    tree.files.len() - 1
                })),
            };
            tree.names.insert(path.clone(), node);
        }
        tree
    }

    /// Every state that a power loss may leave at this moment.
    pub(crate) fn crashes(&self, depth: Depth) -> Vec<Tree> {
        let mut trees = Vec::new();
        for paths in self.possible_paths(ROOT) {
            let mut files: Vec<usize> = Vec::new();
            for target in paths.values() {
                if let Target::File(file) = target
                    && self.files[*file].possible.len() > 1
                    && !files.contains(file)
                {
                    files.push(*file);
                }
            }
            for chosen in self.choices(&files, depth) {
                trees.push(self.tree_with(&paths, &files, &chosen));
            }
        }
        trees
    }

    fn tree_with(&self, paths: &Paths, files: &[usize], chosen: &[usize]) -> Tree {
        let mut tree = Tree::default();
        let mut numbers = BTreeMap::new();
        for (path, target) in paths {
            let node = match target {
                Target::Folder(_) => Node::Folder,
                Target::File(file) => Node::File(*numbers.entry(*file).or_insert_with(|| {
                    let of = &self.files[*file];
                    let content = match files.iter().position(|one| one == file) {
                        Some(at) => &of.possible[chosen[at]],
                        None => &of.live,
                    };
                    tree.files.push(content.clone());
                    tree.files.len() - 1
                })),
            };
            tree.names.insert(path.clone(), node);
        }
        tree
    }

    /// The choices of contents for these files.
    fn choices(&self, files: &[usize], depth: Depth) -> Vec<Vec<usize>> {
        let count = |at: usize| self.files[files[at]].possible.len();
        match depth {
            Depth::Full => {
                let mut all = vec![Vec::new()];
                for at in 0..files.len() {
                    let longer = |chosen: &Vec<usize>| {
                        let chosen = chosen.clone();
                        (0..count(at)).map(move |one| {
                            let mut chosen = chosen.clone();
                            chosen.push(one);
                            chosen
                        })
                    };
                    all = all.iter().flat_map(longer).collect();
                }
                all
            }
            Depth::Single | Depth::Part => {
                let lost = vec![0; files.len()];
                let complete: Vec<usize> = (0..files.len()).map(|at| count(at) - 1).collect();
                let mut all = vec![lost.clone(), complete.clone()];
                for base in [lost, complete] {
                    for at in 0..files.len() {
                        for one in 0..count(at) {
                            let mut chosen = base.clone();
                            chosen[at] = one;
                            all.push(chosen);
                        }
                    }
                }
                all
            }
        }
    }

    /// Every set of paths that a power loss may leave below a folder.
    fn possible_paths(&self, folder: usize) -> Vec<Paths> {
        let mut all = Vec::new();
        for names in self.possible_names(folder) {
            let mut here = vec![Paths::new()];
            for (name, target) in names {
                let name = PathBuf::from(name);
                let below = match target {
                    Target::Folder(inner) => self.possible_paths(inner),
                    Target::File(_) => vec![Paths::new()],
                };
                let with = |paths: &Paths| {
                    let (paths, name) = (paths.clone(), name.clone());
                    below.iter().map(move |below| {
                        let mut paths = paths.clone();
                        paths.insert(name.clone(), target);
                        for (path, target) in below {
                            paths.insert(name.join(path), *target);
                        }
                        paths
                    })
                };
                here = here.iter().flat_map(with).collect();
            }
            all.extend(here);
        }
        all
    }

    fn possible_names(&self, folder: usize) -> HashSet<Names> {
        let folder = &self.folders[folder];
        // For each change, whether it has happened. A change of a name waits for earlier changes of that name.
        let mut happened: Vec<Vec<bool>> = vec![Vec::new()];
        for (at, change) in folder.pending.iter().enumerate() {
            let waits_for: Vec<usize> = (0..at)
                .filter(|before| folder.pending[*before].touches(change))
                .collect();
            let mut longer = Vec::new();
            for known in happened {
                if waits_for.iter().all(|before| known[*before]) {
                    longer.push([&known[..], &[true]].concat());
                }
                longer.push([&known[..], &[false]].concat());
            }
            happened = longer;
        }
        let names = happened.iter().map(|happened| {
            let mut names = folder.durable.clone();
            for (change, happened) in folder.pending.iter().zip(happened) {
                if *happened {
                    change.apply(&mut names);
                }
            }
            names
        });
        names.collect()
    }
}

type Paths = BTreeMap<PathBuf, Target>;

/// Bytes with others written over them, with zeros in between if they are too short.
fn over(bytes: &[u8], at: usize, written: &[u8]) -> Arc<[u8]> {
    let mut all = bytes.to_vec();
    if !written.is_empty() {
        all.resize(all.len().max(at + written.len()), 0);
        all[at..at + written.len()].copy_from_slice(written);
    }
    all.into()
}
