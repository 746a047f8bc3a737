//! How large a checkpoint may become, and what is cut when it would become larger.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use crate::json::{Kind, Node};

/// The bounds that a save keeps on what it adds. `None` is no bound.
///
/// Limits act on the texts and lists that a save sets or lengthens; what was in the checkpoint
/// before, however long, is left alone until it is changed. The defaults are those of the
/// builder-state protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest note on partial work, in characters (code points). Default 200.
    pub partial_work: Option<usize>,
    /// The longest reason of a decision, in characters (code points). Default 100.
    pub rationale: Option<usize>,
    /// How many finished steps stay, the newest. Default 10.
    pub completed_steps: Option<usize>,
    /// The target size of the whole checkpoint in its compact form, in bytes: a save moves finished steps
    /// out for it, and never fails because of it. Default 2,048.
    pub total_bytes: Option<usize>,
    /// How many finished steps stay even when the checkpoint is over its size. Default 3.
    pub steps_kept_over_size: usize,
    /// What marks a cut; it counts within the limit. Default `…`.
    pub mark: String,
    /// Where what a save drops is kept, as the checkpoint is to name it. A save through
    /// [`Checkpoints`](crate::Checkpoints) sets it to what the store says. Default none.
    pub dropped_log: Option<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            partial_work: Some(200),
            rationale: Some(100),
            completed_steps: Some(10),
            total_bytes: Some(2048),
            steps_kept_over_size: 3,
            mark: "…".to_owned(),
            dropped_log: None,
        }
    }
}

impl Limits {
    /// No bounds at all.
    #[must_use]
    pub fn unlimited() -> Self {
        Limits {
            partial_work: None,
            rationale: None,
            completed_steps: None,
            total_bytes: None,
            ..Limits::default()
        }
    }

    /// `text` cut to `limit` characters, or `None` when it fits.
    ///
    /// The cut falls between two grapheme clusters, so an emoji or an accented letter is kept whole
    /// or dropped whole; the mark counts within the limit. Where not even the mark fits, nothing
    /// is left.
    #[must_use]
    pub fn cut(&self, text: &str, limit: usize) -> Option<String> {
        text.chars().nth(limit)?;
        let Some(room) = limit.checked_sub(self.mark.chars().count()) else {
            return Some(String::new());
        };
        let mut used = 0;
        let mut end = 0;
        for (at, cluster) in text.grapheme_indices(true) {
            used += cluster.chars().count();
            if used > room {
                break;
            }
            end = at + cluster.len();
        }
        Some(format!("{}{}", text[..end].trim_end(), self.mark))
    }
}

/// What a save dropped to keep within its limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct Truncation {
    /// Each piece that went, whole, in the order it went.
    pub dropped: Vec<Dropped>,
    /// Set when the save made the checkpoint larger and it is over its target size. A note, no failure.
    pub over_budget: Option<OverBudget>,
    /// Where the store keeps what went, for a person; set once it is kept.
    pub kept_in: Option<String>,
}

impl Truncation {
    /// Whether nothing was cut and the checkpoint is within its size.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dropped.is_empty() && self.over_budget.is_none()
    }
}

/// One piece that a save dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Dropped {
    /// Where it was: a JSON pointer into the checkpoint as the caller gave it.
    pub pointer: String,
    /// Why it went.
    pub reason: DropReason,
    /// All of it, as it was.
    pub value: Value,
    /// Its text on one line, where the value lacks what the text has; a store keeps it beside the rest.
    #[serde(skip)]
    pub text: Option<String>,
}

impl Dropped {
    /// Records that `value` at `pointer` went.
    pub fn new(pointer: impl Into<String>, reason: DropReason, value: Value) -> Self {
        Dropped {
            pointer: pointer.into(),
            reason,
            value,
            text: None,
        }
    }

    /// Takes the value from the text of a file. What no [`Value`] can hold (half of a surrogate pair, a number beyond
    /// all doubles) has no value but the one it has: its text is kept beside.
    pub(crate) fn take_from(&mut self, node: Node<'_>) {
        let value = serde_json::from_str(node.raw()).ok();
        let is_whole = value.is_some() && is_exact(node);
        // No string has a line end in it.
        self.text = (!is_whole).then(|| node.raw().lines().map(str::trim).collect());
        if let Some(value) = value {
            self.value = value;
        }
    }
}

/// Whether a [`Value`] has all of it: each number is written by serde_json as it stands there, which has no more than
/// a double, and no name is given twice.
fn is_exact(node: Node<'_>) -> bool {
    match node.kind() {
        Kind::Object => {
            !node.repeats_a_name() && node.members().all(|(_, member)| is_exact(member))
        }
        Kind::Array => node.elements().all(is_exact),
        Kind::Number => serde_json::from_str::<Value>(node.raw())
            .and_then(|number| serde_json::to_string(&number))
            .is_ok_and(|text| text == node.raw()),
        _ => true,
    }
}

/// Why a piece was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DropReason {
    /// The text was longer than this many characters.
    Characters(usize),
    /// The list had more than this many elements.
    Elements(usize),
    /// The checkpoint was larger than this many bytes.
    Bytes(usize),
    /// Another took its place before it was finished, or it was dropped.
    #[serde(rename = "put-aside")]
    Superseded,
    /// It could not be read, and was overwritten.
    Unreadable,
}

impl std::fmt::Display for DropReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DropReason::Characters(limit) => write!(f, "longer than {limit} characters"),
            DropReason::Elements(limit) => write!(f, "only the last {limit} are kept"),
            DropReason::Bytes(limit) => write!(f, "the checkpoint was over {limit} bytes"),
            DropReason::Superseded => f.write_str("superseded before it was finished"),
            DropReason::Unreadable => f.write_str("it could not be read, and was overwritten"),
        }
    }
}

/// A checkpoint that is over its target size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OverBudget {
    /// Its compact form, in bytes.
    pub bytes: usize,
    /// The target, in bytes.
    pub limit: usize,
    /// Where most of it is, as a JSON pointer: its longest list, or a free text that makes up most of that
    /// list. Never a time stamp.
    pub longest: Option<String>,
    /// The bytes of what [`longest`](OverBudget::longest) points to.
    pub longest_bytes: usize,
    /// How many entries that has; `None` of a text.
    pub entries: Option<usize>,
}

impl OverBudget {
    /// `bytes` where at most `limit` were wanted.
    #[must_use]
    pub fn new(bytes: usize, limit: usize) -> Self {
        OverBudget {
            bytes,
            limit,
            longest: None,
            longest_bytes: 0,
            entries: None,
        }
    }

    /// Names the longest part by its JSON pointer, with its size and, of a list, the number of its entries.
    #[must_use]
    pub(crate) fn with_longest(
        mut self,
        pointer: impl Into<String>,
        bytes: usize,
        entries: Option<usize>,
    ) -> Self {
        self.longest = Some(pointer.into());
        self.longest_bytes = bytes;
        self.entries = entries;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_within_the_limit_is_not_cut() {
        let limits = Limits::default();
        assert_eq!(limits.cut("abc", 3), None);
        assert_eq!(limits.cut("", 0), None);
    }

    #[test]
    fn the_mark_counts_within_the_limit() {
        let limits = Limits::default();
        assert_eq!(limits.cut("abcdef", 4).unwrap(), "abc…");
        assert_eq!(limits.cut("abcdef", 1).unwrap(), "…");
        assert_eq!(limits.cut("abcdef", 0).unwrap(), "");
    }

    #[test]
    fn a_cluster_is_kept_whole_or_left_out_whole() {
        let limits = Limits::default();
        let family = "👩‍👩‍👧‍👦";
        assert_eq!(family.chars().count(), 7);
        assert_eq!(limits.cut(&family.repeat(2), 7).unwrap(), "…");
        assert_eq!(
            limits.cut(&family.repeat(2), 8).unwrap(),
            format!("{family}…")
        );
        assert_eq!(
            limits.cut("e\u{301}e\u{301}e\u{301}", 4).unwrap(),
            "e\u{301}…"
        );
    }
}
