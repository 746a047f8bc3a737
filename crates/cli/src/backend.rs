//! Opens the store at an address such as `sqlite:PATH`. A path is not an address: its store is made of files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agent_checkpoint::store::CheckpointStore;

use crate::failure::Failure;
use crate::global::Global;

/// What a verb will do with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// Change checkpoints.
    Change,
    /// Change checkpoints in a store that may have to be created first.
    Make,
}

/// Whether this is the address of a store without files.
pub(crate) fn is_address(path: &Path) -> bool {
    scheme(path).is_some()
}

/// The kinds of stores on a server, and the form of their addresses.
const SERVERS: [(&str, &str); 5] = [
    ("postgres", "postgres://HOST/DATABASE"),
    ("postgresql", "postgresql://HOST/DATABASE"),
    ("s3", "s3://BUCKET/PREFIX"),
    ("gs", "gs://BUCKET/PREFIX"),
    ("az", "az://CONTAINER/PREFIX"),
];

/// The scheme of an address, its separator, and the rest. The separator lacks `//` if the user forgot it.
fn scheme(path: &Path) -> Option<(&str, &str, &str)> {
    let text = path.to_str()?;
    let (scheme, rest) = text.split_once(':')?;
    if let Some(rest) = rest.strip_prefix("//").filter(|_| scheme != "sqlite") {
        let is_one = !scheme.is_empty() && scheme.chars().all(|it| it.is_ascii_alphanumeric());
        return is_one.then_some((scheme, "://", rest));
    }
    let is_known = scheme == "sqlite" || SERVERS.iter().any(|(known, _)| *known == scheme);
    is_known.then_some((scheme, ":", rest))
}

/// The parameters of an address that are not secret.
const SHOWN: [&str; 9] = [
    "application_name",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "sslmode",
    "sslrootcert",
    "user",
];

/// An address or a path in a form that is safe to print. A URL loses its password, which another command gets from
/// elsewhere.
pub(crate) fn shown(path: &Path) -> PathBuf {
    let (scheme, separator, rest) = match scheme(path) {
        Some(parts) if parts.0 != "sqlite" => parts,
        _ => return path.to_path_buf(),
    };
    // A driver accepts any character in a password, so everything before the last `@` may be one. Bucket URLs have no
    // users.
    let is_bucket = matches!(scheme, "s3" | "gs" | "az");
    let (user, rest) = match rest.rsplit_once('@').filter(|_| !is_bucket) {
        Some((user, rest)) => (user.split([':', '/', '?']).next(), rest),
        None => (None, rest),
    };
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_harmless = |setting: &&str| {
        let name = setting.split('=').next();
        name.is_some_and(|name| SHOWN.contains(&name))
    };
    let settings: Vec<&str> = query.split('&').filter(is_harmless).collect();
    let mark = if settings.is_empty() { "" } else { "?" };
    let settings = settings.join("&");
    format!("{scheme}{separator}{user}{place}{mark}{settings}").into()
}

/// The stores that this process has opened, by address: a table with many rows asks for its store again for each row.
type Open = (PathBuf, bool, Arc<dyn CheckpointStore>);

static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

/// Opens the store at an address.
pub(crate) fn open(
    address: &Path,
    access: Access,
    global: &Global,
) -> Result<Arc<dyn CheckpointStore>, Failure> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let reads = access == Access::Read;
    // A row of a table has the printed form of the address.
    let is_it = |(at, is_read_only, _): &&Open| {
        (at == address || shown(at) == address) && *is_read_only == reads
    };
    if let Some((.., store)) = open.iter().find(is_it) {
        return Ok(store.clone());
    }
    let store: Arc<dyn CheckpointStore> = match scheme(address) {
        Some(("sqlite", _, path)) => sqlite(path, access, global)?,
        Some((kind, ":", _)) => {
            let written = SERVERS.iter().find(|(known, _)| *known == kind);
            return Err(Failure::usage(format!(
                "{kind}: is not a complete address; write {}, or ./{} for a path of that name",
                written.map_or("", |(_, written)| written),
                shown(address).display(),
            )));
        }
        Some(("postgres" | "postgresql", ..)) => postgres(address, access, global)?,
        Some((kind @ ("s3" | "gs" | "az"), ..)) => objects(kind, address, access, global)?,
        _ => {
            return Err(Failure::usage(
                "no store of this kind is known; name a path, sqlite:PATH, postgres://HOST/DATABASE or s3://BUCKET/PREFIX \
                 with --store",
            ));
        }
    };
    open.push((address.to_path_buf(), reads, store.clone()));
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
    let mut store = store.with_max_bytes(global.max_bytes);
    if let Some(timeout) = global.lock_timeout {
        store = store.with_lock_timeout(timeout);
    }
    Ok(match global.now {
        Some(now) => Arc::new(store.with_clock(FixedClock(now))),
        None => Arc::new(store),
    })
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &str, _: Access, _: &Global) -> Result<Arc<dyn CheckpointStore>, Failure> {
    Err(not_built("sqlite"))
}

#[cfg(feature = "postgres")]
fn postgres(
    address: &Path,
    access: Access,
    global: &Global,
) -> Result<Arc<dyn CheckpointStore>, Failure> {
    use agent_checkpoint::FixedClock;
    use agent_checkpoint_postgres::PostgresStore;

    let url = address.to_str().unwrap_or_default();
    let store = match access {
        Access::Read => PostgresStore::read_only(url)?,
        Access::Change => {
            PostgresStore::open_existing(url).map_err(|error| missing(error, address))?
        }
        Access::Make => PostgresStore::open(url)?,
    };
    // This lets `ckpt status --watch` notice it.
    let mut store = store.with_max_bytes(global.max_bytes).notify_changes();
    if let Some(timeout) = global.lock_timeout {
        store = store.with_lock_timeout(timeout);
    }
    Ok(match global.now {
        Some(now) => Arc::new(store.with_clock(FixedClock(now))),
        None => Arc::new(store),
    })
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &Path, _: Access, _: &Global) -> Result<Arc<dyn CheckpointStore>, Failure> {
    Err(not_built("postgres"))
}

#[cfg(feature = "objects")]
fn objects(
    kind: &str,
    address: &Path,
    access: Access,
    global: &Global,
) -> Result<Arc<dyn CheckpointStore>, Failure> {
    use agent_checkpoint::FixedClock;
    use agent_checkpoint_object_store::ObjectCheckpointStore as Store;

    let built = [
        ("s3", cfg!(feature = "s3")),
        ("gs", cfg!(feature = "gs")),
        ("az", cfg!(feature = "az")),
    ];
    if !built.contains(&(kind, true)) {
        return Err(not_built(kind));
    }
    let url = address.to_str().unwrap_or_default();
    let store = match access {
        Access::Read => Store::read_only_from_url(url)?,
        Access::Change => Store::existing_from_url(url).map_err(|error| missing(error, address))?,
        Access::Make => Store::from_url(url)?,
    };
    let mut store = store.with_max_bytes(global.max_bytes);
    if let Some(timeout) = global.lock_timeout {
        store = store.with_timeout(timeout);
    }
    Ok(match global.now {
        Some(now) => Arc::new(store.with_clock(FixedClock(now))),
        None => Arc::new(store),
    })
}

#[cfg(not(feature = "objects"))]
fn objects(
    kind: &str,
    _: &Path,
    _: Access,
    _: &Global,
) -> Result<Arc<dyn CheckpointStore>, Failure> {
    Err(not_built(kind))
}

/// A change of a missing checkpoint creates no store.
#[cfg(any(feature = "objects", feature = "postgres"))]
fn missing(error: agent_checkpoint::Error, address: &Path) -> Failure {
    match error.code() {
        "no-store" => Failure::not_found(format!(
            "{}: there is no store there; check the address, or begin in it with `ckpt start`",
            shown(address).display()
        )),
        _ => error.into(),
    }
}

/// The error of a `ckpt` that was built without a kind of store.
fn not_built(feature: &str) -> Failure {
    Failure::usage(format!(
        "{feature}: this ckpt was built without stores of this kind; in a clone of its source, run `cargo install --path \
         crates/cli --locked --features {feature}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (address, expected) in [
            ("pg://u:p@w@host/db", "pg://u@host/db"),
            ("pg://u:p/w?x@host/db", "pg://u@host/db"),
            (
                "pg://u:p@host/db?port=1&password=p&p%61ssword=p&x",
                "pg://u@host/db?port=1",
            ),
            ("pg://host:1", "pg://host:1"),
            ("s3://bucket/a@b?sig=p", "s3://bucket/a@b"),
            ("sqlite:a:b@c", "sqlite:a:b@c"),
            ("folder/a:b@c", "folder/a:b@c"),
            ("postgres:u:p@host/db", "postgres:u@host/db"),
            ("s3:/bucket", "s3:/bucket"),
        ] {
            assert_eq!(shown(Path::new(address)), Path::new(expected));
        }
    }
}
