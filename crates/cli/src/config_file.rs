//! `ckpt.toml`: the settings of a project.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use agent_checkpoint::quoted;
use toml::de::{DeTable, DeValue};

use crate::backend::{is_address, shown};
use crate::failure::Failure;

pub(crate) const NAME: &str = "ckpt.toml";

/// The largest `ckpt.toml` that is read, in bytes.
const MOST: u64 = 1 << 20;

/// The type of a value.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Number,
    Switch,
}

/// The settings that a file may have, by the names of the options.
const SETTINGS: [(&str, Kind); 11] = [
    ("store", Kind::Text),
    ("format", Kind::Text),
    ("root", Kind::Text),
    ("max-bytes", Kind::Number),
    ("redact", Kind::Switch),
    ("late", Kind::Text),
    ("stalled", Kind::Text),
    ("stuck", Kind::Text),
    ("template", Kind::Text),
    ("templates", Kind::Text),
    ("budget-tokens", Kind::Number),
];

/// A file of settings.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// The path that messages show.
    path: PathBuf,
    /// The folder to which its paths are relative; empty for the current folder.
    folder: PathBuf,
    members: Vec<Member>,
}

/// A setting of a file.
#[derive(Debug)]
pub(crate) struct Member {
    name: &'static str,
    /// The value in the form that an option takes.
    pub(crate) text: String,
    line: usize,
}

impl ConfigFile {
    /// Finds the file of the current folder, or of the nearest folder above it within the repository and the home
    /// folder.
    pub(crate) fn find() -> Result<Option<ConfigFile>, Failure> {
        let Ok(here) = std::env::current_dir() else {
            return Ok(None);
        };
        let home = std::env::home_dir();
        for above in here.ancestors() {
            let folder = match above == here {
                true => PathBuf::new(),
                false => above.to_path_buf(),
            };
            let path = folder.join(NAME);
            match File::open(&path) {
                Ok(file) if above == here || !is_open_to_all(above) => {
                    return ConfigFile::read(file, path, folder).map(Some);
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(unreadable(&path, &error));
                }
                _ => {}
            }
            if is_repository(above) || home.as_deref() == Some(above) {
                break;
            }
        }
        Ok(None)
    }

    fn read(file: File, path: PathBuf, folder: PathBuf) -> Result<ConfigFile, Failure> {
        let mut text = String::new();
        let read = file.take(MOST + 1).read_to_string(&mut text);
        read.map_err(|error| unreadable(&path, &error))?;
        if text.len() as u64 > MOST {
            let message = format!("{}: has more than {MOST} bytes; shorten it", path.display());
            return Err(Failure::usage(message).at(Some(&path), None));
        }
        ConfigFile::parse(&text, path, folder)
    }

    fn parse(text: &str, path: PathBuf, folder: PathBuf) -> Result<ConfigFile, Failure> {
        let line_of = |at: usize| {
            let before = text.as_bytes().iter().take(at);
            1 + before.filter(|byte| **byte == b'\n').count()
        };
        let wrong = |line: usize, why: &str| {
            let place = path.display();
            Failure::usage(format!("{place}:{line}: {why}")).at(Some(&path), None)
        };
        let table = DeTable::parse(text).map_err(|error| {
            let line = line_of(error.span().map_or(0, |span| span.start));
            wrong(line, &format!("{}; correct this line", error.message()))
        })?;
        let mut members: Vec<_> = table.get_ref().iter().collect();
        members.sort_by_key(|(name, _)| name.span().start);
        let members = members.into_iter().map(|(name, value)| {
            let line = line_of(name.span().start);
            let name: &str = name.get_ref();
            let Some(&(name, kind)) = SETTINGS.iter().find(|(known, _)| *known == name) else {
                let known: Vec<&str> = SETTINGS.iter().map(|(known, _)| *known).collect();
                return Err(wrong(
                    line,
                    &format!(
                        "{} is not a setting of this file; the settings are {}",
                        quoted(name),
                        known.join(", ")
                    ),
                ));
            };
            let text = text_of(value.get_ref(), kind);
            let text = text.map_err(|is| wrong(line, &format!("{name} is {is}")))?;
            Ok(Member { name, text, line })
        });
        let members = members.collect::<Result<_, _>>()?;
        Ok(ConfigFile {
            path,
            folder,
            members,
        })
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// The file and the line of a setting.
    pub(crate) fn place_of(&self, member: &Member) -> String {
        format!("{}:{}", self.path.display(), member.line)
    }

    pub(crate) fn wrong(&self, member: &Member, why: &str) -> Failure {
        let place = self.place_of(member);
        let message = format!("{place}: {}: {why}", member.name);
        Failure::usage(message).at(Some(&self.path), None)
    }

    /// The path that a setting names, relative to the file. It must stay inside the repository, because anyone who
    /// clones a repository gets its `ckpt.toml`.
    pub(crate) fn path_of(&self, member: &Member) -> Result<PathBuf, Failure> {
        let path = Path::new(&member.text);
        let (scheme, path) = match member.text.strip_prefix("sqlite:") {
            Some(rest) if member.name == "store" => ("sqlite:", Path::new(rest)),
            _ => ("", path),
        };
        let is_elsewhere = scheme.is_empty() && member.name == "store" && is_address(path);
        let is_all_within = || member.name != "templates" || self.has_all_within(path, 1);
        if is_elsewhere || !self.has_within(path) || !is_all_within() {
            let outside = format!(
                "{} is outside of the repository of this file; name it with --{name}{}",
                shown(Path::new(&member.text)).display(),
                match member.name {
                    "store" | "root" => format!(" or {}", crate::global::variable(member.name)),
                    _ => String::new(),
                },
                name = member.name,
            );
            return Err(self.wrong(member, &outside));
        }
        let path = self.folder.join(path);
        Ok(match scheme {
            "" => path,
            scheme => format!("{scheme}{}", path.display()).into(),
        })
    }

    /// Whether a path, with links followed, is inside the repository of the file, or inside its folder if there is no
    /// repository.
    fn has_within(&self, path: &Path) -> bool {
        let Ok(folder) = self.folder.join(".").canonicalize() else {
            return false;
        };
        let Some(path) = real(&folder.join(path)) else {
            return false;
        };
        if path.starts_with(&folder) {
            return true;
        }
        let repository = folder.ancestors().find(|above| is_repository(above));
        repository.is_some_and(|repository| path.starts_with(repository))
    }

    /// Whether everything in a folder is inside as well, down to this depth.
    fn has_all_within(&self, folder: &Path, depth: usize) -> bool {
        let entries = fs::read_dir(self.folder.join(".").join(folder));
        let mut entries = entries.into_iter().flatten().flatten();
        entries.all(|entry| {
            let path = folder.join(entry.file_name());
            let is_deeper = depth > 0 && entry.path().is_dir();
            self.has_within(&path) && (!is_deeper || self.has_all_within(&path, depth - 1))
        })
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!(
        "{}: cannot be read: {error}; check the file",
        path.display()
    );
    Failure::new(message).at(Some(path), None)
}

/// The value in the form that an option takes, or what it should be.
fn text_of(value: &DeValue<'_>, kind: Kind) -> Result<String, String> {
    match (kind, value) {
        (Kind::Text, DeValue::String(text)) if !text.trim().is_empty() => Ok(text.to_string()),
        (Kind::Text, _) => Err("a text in quotes".to_owned()),
        (Kind::Switch, DeValue::Boolean(is_on)) => Ok(is_on.to_string()),
        (Kind::Switch, _) => Err("true or false".to_owned()),
        (Kind::Number, DeValue::Integer(number)) if number.radix() == 10 => {
            Ok(number.as_str().to_owned())
        }
        (Kind::Number, _) => Err("a whole number, such as 10".to_owned()),
    }
}

/// Whether a folder is the top of a repository, worktree or submodule; for the last two `.git` is a file.
fn is_repository(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(".git")).is_ok()
}

/// Whether every user may write into a folder, such as the one for temporary files.
fn is_open_to_all(folder: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o002 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        false
    }
}

/// A path with links resolved, whose last parts need not exist; `None` if it cannot be determined.
fn real(path: &Path) -> Option<PathBuf> {
    match path.canonicalize() {
        Ok(real) => Some(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A dangling link may lead anywhere.
            let is_link = fs::symlink_metadata(path).is_ok();
            let (above, name) = (path.parent()?, path.file_name()?);
            (!is_link)
                .then(|| real(above))?
                .map(|above| above.join(name))
        }
        Err(_) => None,
    }
}
