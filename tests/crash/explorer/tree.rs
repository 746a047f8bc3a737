//! The content of a folder, at any depth, as a value.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The contents of a file and when they were written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Content {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) time: SystemTime,
}

/// The target of a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Folder,
    /// The file with this number. Names with the same number are hard links.
    File(usize),
}

/// Names, relative to the folder, and the files that they lead to.
///
/// Files are numbered in the order of their first names, so that equal trees are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tree {
    pub(crate) names: BTreeMap<PathBuf, Node>,
    pub(crate) files: Vec<Content>,
}

impl Tree {
    /// The tree below a folder of this machine.
    pub(crate) fn read(root: &Path) -> Tree {
        let mut names = Vec::new();
        walk(root, &mut names);
        names.sort();
        let mut tree = Tree::default();
        let mut known = HashMap::new();
        for path in names {
            let found = fs::symlink_metadata(&path).unwrap();
            let node = if found.is_dir() {
                Node::Folder
            } else {
                Node::File(*known.entry((found.dev(), found.ino())).or_insert_with(|| {
                    tree.files.push(Content {
                        bytes: fs::read(&path).unwrap().into(),
                        time: found.modified().unwrap(),
                    });
                    tree.files.len() - 1
                }))
            };
            let name = path.strip_prefix(root).unwrap().to_path_buf();
            tree.names.insert(name, node);
        }
        tree
    }

    /// Writes the tree into an empty folder of this machine.
    pub(crate) fn write(&self, root: &Path) {
        let mut first = HashMap::new();
        for (name, node) in &self.names {
            let path = root.join(name);
            match node {
                Node::Folder => fs::create_dir(&path).unwrap(),
                Node::File(number) => match first.get(number) {
                    Some(first) => fs::hard_link(first, &path).unwrap(),
                    None => {
                        let content = &self.files[*number];
                        fs::write(&path, &content.bytes).unwrap();
                        let file = File::options().write(true).open(&path).unwrap();
                        file.set_modified(content.time).unwrap();
                        first.insert(number, path);
                    }
                },
            }
        }
    }

    /// The tree without times, for a person, and for comparing trees from different times.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for (name, node) in &self.names {
            text += &match node {
                Node::Folder => format!("  {}/\n", name.display()),
                Node::File(number) => {
                    let bytes = &self.files[*number].bytes;
                    let shown = String::from_utf8_lossy(bytes).replace('\0', "0");
                    let shown: String = shown.trim_end().chars().take(90).collect();
                    format!(
                        "  {} (file {number}, {} bytes): {shown:?}\n",
                        name.display(),
                        bytes.len()
                    )
                }
            };
        }
        text
    }
}

fn walk(folder: &Path, names: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), names);
        }
        names.push(entry.path());
    }
}
