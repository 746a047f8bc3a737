//! The lines of a ledger as a store gives them: all, or those behind what a caller knows already.

use crate::checkpoint::Revision;

/// What stands for the lines of a ledger that were read. A store makes it, and compares it with what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerMark {
    lines: usize,
    token: String,
}

/// Lines of a ledger, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerLines {
    /// How many lines are before these: those of the mark that was given, or none.
    pub before: usize,
    /// The lines.
    pub lines: Vec<String>,
    /// What stands for those before together with these. `None` where the store has no marks.
    pub mark: Option<LedgerMark>,
}

impl LedgerMark {
    /// The mark of so many lines, with whatever shows the store that they are still the same.
    pub fn new(lines: usize, token: impl Into<String>) -> LedgerMark {
        LedgerMark {
            lines,
            token: token.into(),
        }
    }

    /// The mark of so many lines of which this is the last, for a store whose lines no program but itself changes.
    ///
    /// No line of a [`Ledger`](crate::ledger::Ledger) is equal to one of another ledger at the same place, so that the
    /// last line stands for all before it, also where the task was forgotten and begun anew.
    #[must_use]
    pub fn of_last_line(lines: usize, last: &str) -> LedgerMark {
        LedgerMark::new(lines, Revision::of(last.as_bytes()).to_string())
    }

    /// How many lines it stands for.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// What the store gave.
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

    /// These lines, behind so many of the mark that was given.
    #[must_use]
    pub fn new(before: usize, lines: Vec<String>, mark: Option<LedgerMark>) -> LedgerLines {
        LedgerLines {
            before,
            lines,
            mark,
        }
    }

    /// The lines behind a mark [of the last line](LedgerMark::of_last_line). `read` gives those from a number on, which
    /// counts from 0, and none where there are fewer.
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
