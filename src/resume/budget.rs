//! The size limit of a prompt.

use std::fmt;
use std::sync::Arc;

/// How many bytes count as one token by default.
const BYTES_PER_TOKEN: usize = 4;

/// The greatest size of a prompt, and how it is measured.
///
/// ```
/// use agent_checkpoint::resume::Budget;
///
/// let rough = Budget::tokens(8_000);
/// let exact = Budget::bytes(32_000);
/// // With the tokenizer of your model.
/// let words = Budget::tokens_by(8_000, |text| text.split_whitespace().count());
/// assert_eq!(words.size("three small words"), 3);
/// ```
#[derive(Clone)]
pub struct Budget {
    most: usize,
    count: Option<Arc<Count>>,
}

type Count = dyn Fn(&str) -> usize + Send + Sync;

impl Budget {
    /// At most `most` tokens, estimated at four bytes each.
    #[must_use]
    pub fn tokens(most: usize) -> Self {
        Budget { most, count: None }
    }

    /// At most `most` tokens, counted by `count`. The count must grow with the text.
    pub fn tokens_by(most: usize, count: impl Fn(&str) -> usize + Send + Sync + 'static) -> Self {
        Budget {
            most,
            count: Some(Arc::new(count)),
        }
    }

    /// At most `most` bytes.
    #[must_use]
    pub fn bytes(most: usize) -> Self {
        Budget::tokens_by(most, str::len)
    }

    /// The limit.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// The size of a text, in the unit of this budget.
    #[must_use]
    pub fn size(&self, text: &str) -> usize {
        match &self.count {
            Some(count) => count(text),
            None => estimate(text),
        }
    }

    /// Whether the text is within the budget.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        self.size(text) <= self.most
    }
}

/// Tokens at four bytes each.
pub(super) fn estimate(text: &str) -> usize {
    text.len().div_ceil(BYTES_PER_TOKEN)
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}
