//! Why a text is no document.

use std::fmt;

use serde::Serialize;

/// The ways in which bytes can fail to be a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CorruptCode {
    /// No bytes, or only white space.
    Empty,
    /// Only NUL bytes: what a file system shows after a power cut without fsync.
    NulBytes,
    /// A byte sequence that is not UTF-8.
    NotUtf8,
    /// Text that JSON does not allow at this place.
    Syntax,
    /// Git conflict markers: both sides of a merge are in the text.
    MergeConflict,
    /// The text ends inside a value.
    Truncated,
    /// A whole document and then more: often a short text written over a longer one.
    TrailingBytes,
    /// More than 128 containers inside each other.
    TooDeep,
    /// More bytes than the limit.
    TooLarge,
    /// JSON, but not an object.
    NotAnObject,
}

impl CorruptCode {
    /// The code as text, such as `trailing-bytes`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CorruptCode::Empty => "empty",
            CorruptCode::NulBytes => "nul-bytes",
            CorruptCode::NotUtf8 => "not-utf8",
            CorruptCode::Syntax => "syntax",
            CorruptCode::MergeConflict => "merge-conflict",
            CorruptCode::Truncated => "truncated",
            CorruptCode::TrailingBytes => "trailing-bytes",
            CorruptCode::TooDeep => "too-deep",
            CorruptCode::TooLarge => "too-large",
            CorruptCode::NotAnObject => "not-an-object",
        }
    }
}

impl fmt::Display for CorruptCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is no document, and at which place in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Corrupt {
    /// The kind of corruption.
    pub code: CorruptCode,
    /// The line of the place, from 1; a line ends with `\n`.
    pub line: usize,
    /// The column of the place in its line, from 1, in characters.
    pub column: usize,
    /// The number of bytes before the place.
    pub offset: usize,
    /// What is wrong there and, where it helps, what to do.
    pub message: String,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at line {}, column {} (byte {}): {}",
            self.code, self.line, self.column, self.offset, self.message
        )
    }
}

impl std::error::Error for Corrupt {}

/// Finds the conflict markers of git. A text with both sides of a merge must be resolved by a person.
pub(crate) fn conflict(bytes: &[u8]) -> Option<Corrupt> {
    let is = |line: &[u8], marker: u8| {
        let rest = line.strip_prefix([marker; 7].as_slice());
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b' ' | b'\r')))
    };
    let mut found: Vec<String> = Vec::new();
    let mut first = None;
    let (mut offset, mut open) = (0, None);
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        open = match open {
            _ if is(line, b'<') => Some((number, offset, false)),
            Some((start, at, _)) if is(line, b'=') => Some((start, at, true)),
            Some((start, at, true)) if is(line, b'>') => {
                first.get_or_insert((start, at));
                found.push(format!("{start}-{number}"));
                None
            }
            open => open,
        };
        offset += line.len() + 1;
    }
    let (line, offset) = first?;
    let more = match found.len().saturating_sub(MOST_CONFLICTS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    found.truncate(MOST_CONFLICTS);
    Some(Corrupt {
        code: CorruptCode::MergeConflict,
        line,
        column: 1,
        offset,
        message: format!(
            "git conflict markers at lines {}{more}: resolve the merge",
            found.join(", ")
        ),
    })
}

/// The most conflicts that a message lists.
const MOST_CONFLICTS: usize = 4;
