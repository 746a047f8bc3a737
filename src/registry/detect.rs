//! Detects the format of a file by its name, its folder and its content.

use std::path::Path;

use super::{Format, Formats};
use crate::checkpoint::{Error, ErrorKind, Evidence, Result};
use crate::json::{self, Corrupt, CorruptCode, Document};
use crate::store::{CheckpointStore, FileOptions, FileStore, HistoryEntry};

/// The format of a file, with the evidence for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Detected {
    /// The format.
    pub format: Format,
    /// The evidence for it.
    pub evidence: Evidence,
}

impl Formats {
    /// Detects the format of a file by its path and its document.
    ///
    /// A corrupt document (`None`) is judged by its path alone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownFormat`] when it fits no format, [`ErrorKind::Ambiguous`] when it fits two equally well.
    pub fn detect(&self, path: &Path, document: Option<&Document>) -> Result<Detected> {
        let mut fitting: Vec<Detected> = self
            .iter()
            .filter_map(|format| {
                let evidence = format.recognise(path, document)?;
                Some(Detected {
                    format: *format,
                    evidence,
                })
            })
            .collect();
        fitting.sort_by_key(|detected| std::cmp::Reverse(detected.evidence.strength));
        match fitting.as_slice() {
            // The name is evidence only if the document cannot be read, so it is used for the message here.
            [] => Err(
                self.unknown(match document.and_then(|_| self.detect(path, None).ok()) {
                    Some(place) => format!(
                        "its place is one of {}, but it has none of the members of that format",
                        place.format.name
                    ),
                    None => "its members match no known format".to_owned(),
                }),
            ),
            [first, second, ..] if first.evidence.strength == second.evidence.strength => {
                Err(Error::new(ErrorKind::Ambiguous {
                    what: "format that fits",
                    candidates: fitting
                        .iter()
                        .filter(|other| other.evidence.strength == first.evidence.strength)
                        .map(|other| other.format.name.to_owned())
                        .collect(),
                }))
            }
            [first, ..] => Ok(first.clone()),
        }
        .map_err(|error| error.with_path(path))
    }

    /// The error for a file that fits no format.
    fn unknown(&self, found: impl Into<String>) -> Error {
        Error::new(ErrorKind::UnknownFormat {
            name: None,
            found: found.into(),
            known: self.names(),
        })
    }

    /// Detects the format of bytes that are no document, by their salvaged part, else by their path.
    ///
    /// `None` if neither identifies a format, but the bytes are a damaged document: empty, only NUL bytes, or a text
    /// that begins like an object, possibly after a comment, a code fence or a conflict marker, or in UTF-16.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownFormat`] when the file is no checkpoint: JSON Lines whose first object has no member of a
    /// format, a list, Markdown, YAML, or anything else.
    pub fn detect_damaged(
        &self,
        path: &Path,
        bytes: &[u8],
        cause: &Corrupt,
    ) -> Result<Option<Detected>> {
        let good = json::good_part(bytes, cause.clone()).map(|good| good.document);
        let by_content = good.and_then(|good| self.detect(path, Some(&good)).ok());
        let known = by_content.or_else(|| self.detect(path, None).ok());
        match known
            .is_none()
            .then(|| other_kind(path, bytes, cause))
            .flatten()
        {
            Some(found) => Err(self.unknown(found).with_path(path)),
            None => Ok(known),
        }
    }

    /// Detects the format of the newest state in the history of a file, of any task; `None` if the history has none.
    #[must_use]
    pub fn detect_kept(&self, path: &Path, max_bytes: u64) -> Option<Detected> {
        let options = FileOptions::read_only().with_max_bytes(max_bytes);
        let store = FileStore::single(path, options).ok()?;
        let (key, history) = (store.key()?, store.history()?);
        let mut entries = history.states(key).ok()?.into_iter();
        let is_good = |entry: &HistoryEntry| !entry.is_current() && entry.revision.is_ok();
        let stored = history
            .load_revision(key, &entries.find(is_good)?.id)
            .ok()?;
        self.detect(path, Some(&stored.document)).ok()
    }
}

/// The kind of file, if the bytes are no damaged document.
fn other_kind(path: &Path, bytes: &[u8], cause: &Corrupt) -> Option<&'static str> {
    if matches!(cause.code, CorruptCode::Empty | CorruptCode::NulBytes) {
        return None;
    }
    if begins_like_object(bytes) {
        let more = bytes.get(cause.offset);
        let is_lines =
            cause.code == CorruptCode::TrailingBytes && matches!(more, Some(b'{' | b'['));
        return is_lines
            .then_some("JSON Lines, and the first object has no member of a known format");
    }
    let ending = path.extension().and_then(|ending| ending.to_str());
    match ending.map(str::to_ascii_lowercase).as_deref() {
        Some("md" | "markdown") => return Some("Markdown"),
        Some("yaml" | "yml") => return Some("YAML"),
        Some("toml") => return Some("TOML"),
        _ => {}
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Some("binary data, or text that is not UTF-8");
    };
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let line = text.lines().next().unwrap_or_default();
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "_-.".contains(c))
    };
    Some(match cause.code {
        _ if text.starts_with('[') => "a JSON list",
        CorruptCode::NotAnObject => "a JSON value that is not an object",
        _ if text.contains(|c: char| c.is_control() && !c.is_whitespace()) => "binary data",
        _ if line.starts_with("---") => "YAML, or Markdown with front matter",
        _ if line.starts_with("# ") || line.starts_with("## ") => "Markdown or YAML",
        _ if line.split_once(':').is_some_and(|(name, _)| is_name(name)) => "YAML",
        _ => "text that is not JSON",
    })
}

fn begins_like_object(bytes: &[u8]) -> bool {
    json::start_of_object(bytes).is_some()
        || utf16(bytes).is_some_and(|text| json::start_of_object(text.as_bytes()).is_some())
}

/// Decodes bytes that look like UTF-16.
fn utf16(bytes: &[u8]) -> Option<String> {
    let read: fn([u8; 2]) -> u16 = match bytes {
        [0xFE, 0xFF, ..] | [0, 1..=255, ..] => u16::from_be_bytes,
        [0xFF, 0xFE, ..] | [1..=255, 0, ..] => u16::from_le_bytes,
        _ => return None,
    };
    let (units, _) = bytes.as_chunks::<2>();
    let chars = char::decode_utf16(units.iter().map(|unit| read(*unit)));
    Some(
        chars
            .map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect(),
    )
}
