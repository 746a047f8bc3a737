//! The versions of a format's schema, and how a document of an older version is read.

use std::borrow::Cow;

use super::{Checkpoint, Error, Result};
use crate::json::{Document, Reading, Rewrite};

/// Edits the text of a document from one version of its format to the next. Everything that it does not touch
/// stays the same.
///
/// It runs in memory on each read of an old document until one is saved; for a change it runs under the store's
/// lock. So it must use nothing but the document. If it fails, the document can be neither read nor changed.
pub type Migration = fn(&mut Document) -> Result<()>;

/// One released version of a format's schema.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SchemaVersion {
    /// The version, counted from 1.
    pub number: u64,
    /// Its changes, in one line.
    pub summary: &'static str,
    /// Converts a document of the version before.
    pub migration: Option<Migration>,
}

impl SchemaVersion {
    /// A version that can read every document of the version before, as far as the type can.
    #[must_use]
    pub const fn new(number: u64, summary: &'static str) -> SchemaVersion {
        SchemaVersion {
            number,
            summary,
            migration: None,
        }
    }

    /// A version that changed existing members: it moved one, or changed its meaning.
    #[must_use]
    pub const fn migrated(
        number: u64,
        summary: &'static str,
        migration: Migration,
    ) -> SchemaVersion {
        SchemaVersion {
            number,
            summary,
            migration: Some(migration),
        }
    }
}

/// Whether any of the versions has a migration.
pub(crate) const fn any_migration(versions: &[SchemaVersion]) -> bool {
    let mut at = 0;
    while at < versions.len() {
        if versions[at].migration.is_some() {
            return true;
        }
        at += 1;
    }
    false
}

/// Checks the versions of a format at compile time.
const fn check(versions: &[SchemaVersion], pointer: Option<&str>) {
    assert!(
        pointer.is_none() || !versions.is_empty(),
        "a format whose documents tell their version (VERSION_POINTER) lists its versions (SCHEMA_VERSIONS)"
    );
    assert!(
        pointer.is_some() || !any_migration(versions),
        "a format with migrations says where its documents tell their version (VERSION_POINTER): without that a \
         migration would run again at every read"
    );
    let mut at = 1;
    while at < versions.len() {
        assert!(
            versions[at - 1].number < versions[at].number,
            "SCHEMA_VERSIONS are in ascending order"
        );
        at += 1;
    }
}

/// A checkpoint read as the latest version of its format.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Current<'d, C> {
    /// The document that was read: the stored one, or the result of the migrations.
    pub document: Cow<'d, Document>,
    /// The typed checkpoint with its violations.
    pub reading: Reading<C>,
    /// The version of the stored document, if migrations brought it to the latest.
    pub migrated_from: Option<u64>,
}

/// Reads a checkpoint of any released version.
///
/// A document of an older version goes through the migrations of all later versions, in memory: the stored
/// document does not change until something is saved. A document without a version counts as the first version.
/// One of a newer version, or whose version cannot be read, is read without migration.
///
/// The compiler checks that a format's versions are in order, and that a format with migrations has a
/// [`VERSION_POINTER`](Checkpoint::VERSION_POINTER).
///
/// # Errors
///
/// [`ErrorKind::Unreadable`](crate::ErrorKind::Unreadable) when the type does not follow the rules of [`Checkpoint`];
/// an error with the code `migration` when a migration fails.
pub fn read<C: Checkpoint>(document: &Document) -> Result<Current<'_, C>> {
    const { check(C::SCHEMA_VERSIONS, C::VERSION_POINTER) }
    let reading = document.read::<C>()?;
    let Some((from, to)) = older(document, &reading) else {
        return Ok(Current {
            document: Cow::Borrowed(document),
            reading,
            migrated_from: None,
        });
    };
    let mut migrated = document.clone();
    let since = C::SCHEMA_VERSIONS.iter().filter(|it| it.number > from);
    for (version, migrate) in since.filter_map(|it| Some((it.number, it.migration?))) {
        migrate(&mut migrated).map_err(|error| failed(from, version, error))?;
    }
    let reading = migrated.read::<C>()?;
    let mut current = reading.value.clone();
    current.set_schema_version(to);
    if current.schema_version() != Some(to) {
        let why = "set_schema_version does not set what schema_version tells";
        return Err(failed(from, to, why));
    }
    let rewrite = Rewrite::new().identities(C::IDENTITIES);
    let rewritten = migrated
        .rewrite(&reading, &current, &rewrite)
        .map_err(|error| failed(from, to, error))?;
    tracing::debug!(format = C::FORMAT, from, to, "migrated in memory");
    Ok(Current {
        document: Cow::Owned(rewritten.document),
        reading: rewritten.reading,
        migrated_from: Some(from),
    })
}

fn failed(
    from: u64,
    to: u64,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    let message = format!(
        "it could not be migrated from schema version {from} to version {to}, and is unchanged; correct it by hand \
         or with the program that wrote it"
    );
    Error::other("migration", message).with_source(source)
}

/// The version of what was read and the latest one, where there are migrations between them.
fn older<C: Checkpoint>(document: &Document, reading: &Reading<C>) -> Option<(u64, u64)> {
    let (first, latest) = (C::SCHEMA_VERSIONS.first()?, C::latest_version()?);
    if version_is_unreadable::<C>(document, reading) {
        return None;
    }
    let from = reading.value.schema_version().unwrap_or(first.number);
    let mut since = C::SCHEMA_VERSIONS.iter().filter(|it| it.number > from);
    since
        .any(|version| version.migration.is_some())
        .then_some((from, latest))
}

/// Whether the document has a version that could not be read.
pub(crate) fn version_is_unreadable<C: Checkpoint>(
    document: &Document,
    reading: &Reading<C>,
) -> bool {
    C::VERSION_POINTER.is_some_and(|pointer| {
        let place = format!("{}{pointer}", document.at());
        reading.left_out().contains(&place)
    })
}
