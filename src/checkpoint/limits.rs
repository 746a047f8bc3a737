//! How large a checkpoint may become, and what is dropped when it would exceed that.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

use crate::json::{Kind, Node};

/// The limits on what a save adds; `None` means no limit.
///
/// Limits apply to the texts and lists that a save sets or lengthens. Older content, however long, stays until
/// it is changed. The defaults are those of the builder-state protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest note on partial work, in characters (code points). Default 200.
    pub partial_work: Option<usize>,
    /// The longest reason of a decision, in characters (code points). Default 100.
    pub rationale: Option<usize>,
    /// How many of the newest finished steps are kept. Default 10.
    pub completed_steps: Option<usize>,
    /// The target size of the whole checkpoint in compact form, in bytes. A save moves finished steps out to
    /// reach it, but never fails because of it. Default 2,048.
    pub total_bytes: Option<usize>,
    /// How many finished steps are kept even if the checkpoint is over its target size. Default 3.
    pub steps_kept_over_size: usize,
    /// The mark at the end of a cut text; it counts within the limit. Default `…`.
    pub mark: String,
    /// The dropped log as the checkpoint is to name it. A save through [`Checkpoints`](crate::Checkpoints) sets
    /// it to the name that the store gives. Default none.
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
    /// No limits at all.
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

    /// `text` cut to `limit` characters, or `None` if it fits.
    ///
    /// The cut falls between two grapheme clusters, so an emoji or an accented letter is kept or dropped as a
    /// whole. The mark counts within the limit; if not even the mark fits, the result is empty.
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

/// What a save dropped to stay within its limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct Truncation {
    /// Each dropped item, whole, in the order in which it was dropped.
    pub dropped: Vec<Dropped>,
    /// Set if the save made the checkpoint larger and it is over its target size. This is a note, not a failure.
    pub over_budget: Option<OverBudget>,
    /// Where the store keeps the dropped items, for a person; set once they are stored.
    pub kept_in: Option<String>,
}

impl Truncation {
    /// Whether nothing was dropped and the checkpoint is within its target size.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dropped.is_empty() && self.over_budget.is_none()
    }
}

/// One item that a save dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Dropped {
    /// Where it was: a JSON pointer into the checkpoint that the caller passed in.
    pub pointer: String,
    /// Why it was dropped.
    pub reason: DropReason,
    /// The whole value.
    pub value: Value,
    /// Its original text on one line, if the value cannot represent it exactly. A store keeps it with the value.
    #[serde(skip)]
    pub text: Option<String>,
}

impl Dropped {
    /// An item at `pointer`, with its value and the reason.
    pub fn new(pointer: impl Into<String>, reason: DropReason, value: Value) -> Self {
        Dropped {
            pointer: pointer.into(),
            reason,
            value,
            text: None,
        }
    }

    /// Takes the value from the text of a file. If no [`Value`] can represent that text (half of a surrogate
    /// pair, a number beyond a double), the text is kept as well.
    pub(crate) fn take_from(&mut self, node: Node<'_>) {
        let value = serde_json::from_str(node.raw()).ok();
        let is_whole = value.is_some() && is_exact(node);
        // No JSON string contains a line end, so lines can be joined.
        self.text = (!is_whole).then(|| node.raw().lines().map(str::trim).collect());
        if let Some(value) = value {
            self.value = value;
        }
    }
}

/// Whether a [`Value`] represents the node exactly: serde_json, which stores numbers as doubles, writes each
/// number as it is spelled there, and no name occurs twice.
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

/// Why an item was dropped.
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
    /// Another item replaced it before it was finished, or it was removed from the plan.
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
    /// The size of its compact form, in bytes.
    pub bytes: usize,
    /// The target, in bytes.
    pub limit: usize,
    /// The JSON pointer of its largest part: the longest list, or a free text that makes up most of that list.
    /// Never a time stamp.
    pub longest: Option<String>,
    /// The size of the part at [`longest`](OverBudget::longest), in bytes.
    pub longest_bytes: usize,
    /// How many entries that part has; `None` if it is a text.
    pub entries: Option<usize>,
}

impl OverBudget {
    /// A checkpoint of `bytes` with a target of `limit`.
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

    /// Names the largest part by its JSON pointer, with its size and, for a list, the number of its entries.
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
