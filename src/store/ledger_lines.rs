//! The lines of a ledger as a store returns them: all, or only those after a mark of the caller.

use crate::checkpoint::Revision;

/// Identifies the lines of a ledger that were read. A store makes it, and compares it with the present lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerMark {
    lines: usize,
    token: String,
}

/// Lines of a ledger, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerLines {
    /// How many lines are before these: as many as the given mark has, or none.
    pub before: usize,
    /// The lines.
    pub lines: Vec<String>,
    /// The mark of these lines and those before. `None` if the store has no marks.
    pub mark: Option<LedgerMark>,
}

impl LedgerMark {
    /// The mark of this many lines, with a token by which the store checks that they are unchanged.
    pub fn new(lines: usize, token: impl Into<String>) -> LedgerMark {
        LedgerMark {
            lines,
            token: token.into(),
        }
    }

    /// The mark of this many lines with this last one, for a store whose lines no other program changes.
    ///
    /// No line of a [`Ledger`](crate::ledger::Ledger) equals one of another ledger at the same place. So the last line
    /// identifies all before it, even if the task was forgotten and begun anew.
    #[must_use]
    pub fn of_last_line(lines: usize, last: &str) -> LedgerMark {
        LedgerMark::new(lines, Revision::of(last.as_bytes()).to_string())
    }

    /// How many lines it identifies.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// The token of the store.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl LedgerLines {
    /// All lines of a ledger, in a store that has no marks.
    #[must_use]
    pub fn all(lines: Vec<String>) -> LedgerLines {
        LedgerLines::new(0, lines, None)
    }

    /// These lines, after the first `before` lines of the given mark.
    #[must_use]
    pub fn new(before: usize, lines: Vec<String>, mark: Option<LedgerMark>) -> LedgerLines {
        LedgerLines {
            before,
            lines,
            mark,
        }
    }

    /// The lines after a mark [of the last line](LedgerMark::of_last_line). `read` returns the lines from an index on,
    /// which counts from 0; none if there are fewer lines.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn since<E>(
        mark: Option<&LedgerMark>,
        mut read: impl FnMut(usize) -> Result<Vec<String>, E>,
    ) -> Result<LedgerLines, E> {
        if let Some(mark) = mark
            && let Some(last) = mark.lines.checked_sub(1)
        {
            let mut lines = read(last)?.into_iter();
            let is_same = |line: &String| LedgerMark::of_last_line(mark.lines, line) == *mark;
            if lines.next().is_some_and(|line| is_same(&line)) {
                let lines: Vec<String> = lines.collect();
                let now = match lines.last() {
                    Some(line) => LedgerMark::of_last_line(mark.lines + lines.len(), line),
                    None => mark.clone(),
                };
                return Ok(LedgerLines::new(mark.lines, lines, Some(now)));
            }
        }
        let lines = read(0)?;
        let last = lines.last();
        let mark = last.map(|line| LedgerMark::of_last_line(lines.len(), line));
        Ok(LedgerLines::new(0, lines, mark))
    }
}
