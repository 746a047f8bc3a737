//! From an address such as `sqlite:PATH` to an open store. A path is no address: its store is made of files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agent_checkpoint::store::CheckpointStore;

use crate::args::Global;
use crate::failure::Failure;

/// What a verb is about to do with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// Change what is there.
    Change,
    /// The same, in a store that may have to be made first.
    Make,
}

/// Whether this is the address of a store that is no file or folder.
pub(crate) fn is_address(path: &Path) -> bool {
    scheme(path).is_some()
}

/// The kind of the store, and where it is.
fn scheme(path: &Path) -> Option<(&str, &str)> {
    let text = path.to_str()?;
    if let Some(rest) = text.strip_prefix("sqlite:") {
        return Some(("sqlite", rest));
    }
    let (scheme, rest) = text.split_once("://")?;
    let is_one = !scheme.is_empty() && scheme.chars().all(|it| it.is_ascii_alphanumeric());
    is_one.then_some((scheme, rest))
}

/// An address or a path as it may be printed: without the password of a URL.
pub(crate) fn shown(path: &Path) -> PathBuf {
    let Some((scheme, rest)) = scheme(path) else {
        return path.to_path_buf();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    match authority
        .rsplit_once('@')
        .map(|(user, host)| (user.split_once(':'), host))
    {
        Some((Some((user, _)), host)) if scheme != "sqlite" => {
            PathBuf::from(format!("{scheme}://{user}:***@{host}{behind}"))
        }
        _ => path.to_path_buf(),
    }
}

/// A store that was opened, and where, as it is shown: once in a process, since a table of many rows asks for it with
/// each.
type Open = (PathBuf, bool, Arc<dyn CheckpointStore>);

static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

/// Opens the store at an address.
pub(crate) fn open(
    address: &Path,
    access: Access,
    global: &Global,
) -> Result<Arc<dyn CheckpointStore>, Failure> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (place, reads) = (shown(address), access == Access::Read);
    let is_it = |(at, is_read_only, _): &&Open| *at == place && *is_read_only == reads;
    if let Some((.., store)) = open.iter().find(is_it) {
        return Ok(store.clone());
    }
    let store: Arc<dyn CheckpointStore> = match scheme(address) {
        Some(("sqlite", path)) => sqlite(path, access, global)?,
        _ => {
            return Err(Failure::usage(
                "no store of this kind is known; name a path, or sqlite:PATH with --store",
            ));
        }
    };
    open.push((place, reads, store.clone()));
    Ok(store)
}

#[cfg(feature = "sqlite")]
fn sqlite(
    path: &str,
    access: Access,
    global: &Global,
) -> Result<Arc<dyn CheckpointStore>, Failure> {
    use agent_checkpoint::FixedClock;
    use agent_checkpoint_sqlite::SqliteStore;

    if path.is_empty() {
        return Err(Failure::usage("sqlite: names no file; write sqlite:PATH"));
    }
    let is_there = Path::new(path).exists();
    let store = match access {
        Access::Make => SqliteStore::open(path)?,
        _ if !is_there => {
            return Err(Failure::not_found(format!(
                "sqlite:{path}: there is no such database; check the path, or begin in it with `ckpt start`"
            )));
        }
        Access::Change => SqliteStore::open(path)?,
        Access::Read => SqliteStore::read_only(path)?,
    };
    let store = store.with_max_bytes(global.max_bytes);
    Ok(match global.now {
        Some(now) => Arc::new(store.with_clock(FixedClock(now))),
        None => Arc::new(store),
    })
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &str, _: Access, _: &Global) -> Result<Arc<dyn CheckpointStore>, Failure> {
    Err(Failure::usage(
        "sqlite: this ckpt has no databases; install one that has with `cargo install agent-checkpoint-cli \
         --features sqlite`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (address, expected) in [
            ("pg://u:p@w@host/db", "pg://u:***@host/db"),
            ("pg://u@host/d:b@c", "pg://u@host/d:b@c"),
            ("sqlite:a:b@c", "sqlite:a:b@c"),
            ("folder/a:b@c", "folder/a:b@c"),
        ] {
            assert_eq!(shown(Path::new(address)), Path::new(expected));
        }
    }
}
