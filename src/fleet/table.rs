//! The table for a person, as text that needs no terminal.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation;

use super::{Fleet, LeftOut, Row, RowState, WhyLeftOut, WhyNotScanned, age, cell};
use crate::liveness::words::span;
use crate::redaction::Redaction;

const HEADER: [&str; 10] = [
    "AGENT", "TASK", "PROGRESS", "PHASE", "UPDATED", "RESULT", "OWNER", "ELAPSED", "LEFT", "FILE",
];
/// The widest cell, in columns.
const WIDEST: usize = 40;

impl Fleet {
    /// The table, the findings and the totals, as lines for a person. Plain text: nothing that a file says
    /// is obeyed by a terminal, and what the redaction finds is taken out.
    #[must_use]
    pub fn table(&self, redaction: Option<&Redaction>) -> String {
        let mut text = String::new();
        let mut rows: Vec<[String; 10]> = self
            .rows()
            .iter()
            .map(|row| self.cells(row, redaction))
            .collect();
        let mut header = HEADER.map(str::to_owned);
        let mut tasks = HashSet::new();
        let is_alone = |row: &Row| row.task.clone().is_none_or(|task| tasks.insert(task));
        if self.rows().iter().all(is_alone) {
            // No task is there twice, so no reader asks which file is meant.
            header[9].clear();
            rows.iter_mut().for_each(|cells| cells[9].clear());
        }
        let all = || std::iter::once(&header).chain(&rows);
        let widths: [usize; 10] =
            std::array::from_fn(|column| all().map(|row| width(&row[column])).max().unwrap_or(0));
        for row in all().filter(|_| !rows.is_empty()) {
            let mut line = String::new();
            for (cell, width_of_column) in row.iter().zip(widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width_of_column + 2 - width(cell)));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for finding in self.findings() {
            text.push_str(&format!(
                "! {}\n",
                cell::plain(&finding.to_string(), redaction)
            ));
        }
        text.push_str(&self.summary());
        text.push('\n');
        text
    }

    fn cells(&self, row: &Row, redaction: Option<&Redaction>) -> [String; 10] {
        let plain = |text: &str| cell::plain(text, redaction);
        let text = |text: Option<&String>| short(&plain(text.map_or("—", |t| t)));
        let owner = row.owner.as_ref().filter(|owner| owner.stands);
        let task = match &row.task {
            None => short_end(&plain(&row.place.to_string())),
            task => text(task.as_ref()),
        };
        [
            text(row.agent.as_ref()),
            task,
            progress(row),
            text(row.phase.as_ref()),
            short(&plain(&age::age(row.updated_at.as_ref(), self.now()))),
            self.result(row),
            text(owner.map(|owner| &owner.name)),
            row.progress.elapsed.map_or_else(|| "—".to_owned(), span),
            row.progress.rest.map_or_else(|| "—".to_owned(), span),
            short_end(&plain(&row.place.to_string())),
        ]
    }

    /// The result, with the reason where nothing else tells it.
    fn result(&self, row: &Row) -> String {
        match &row.state {
            RowState::Corrupt { .. } | RowState::Unreadable { .. } => row.result().to_owned(),
            _ => row.result().replace('_', " "),
        }
    }

    /// The whole in a line, such as `3 checkpoints: 1 active, 2 late; 45% done`.
    #[must_use]
    pub fn summary(&self) -> String {
        let totals = self.totals();
        let mut text = match totals.rows {
            0 => "no checkpoints".to_owned(),
            1 => "1 row".to_owned(),
            rows => format!("{rows} rows"),
        };
        let results: Vec<String> = totals
            .results
            .iter()
            .map(|(result, count)| format!("{count} {}", result.replace('_', " ")))
            .collect();
        if !results.is_empty() {
            text.push_str(&format!(": {}", results.join(", ")));
        }
        if let Some(percent) = totals.percent {
            text.push_str(&format!("; {percent}% done"));
        }
        if let Some(rest) = totals.rest {
            text.push_str(&format!(", about {} left", span(rest)));
        }
        if totals.resumable > 0 {
            text.push_str(&format!("; {} can be resumed", totals.resumable));
        }
        let aside = |why: &WhyLeftOut| self.left_out().iter().filter(|l| l.why == *why).count();
        let archives = aside(&WhyLeftOut::Archive);
        if archives > 0 {
            text.push_str(&format!("; {archives} put aside"));
        }
        let others = self.left_out().len() - archives;
        if others > 0 {
            text.push_str(&format!("; {others} other .json left out"));
        }
        let deep = |why: &WhyNotScanned| !matches!(why, WhyNotScanned::Ignored);
        let skipped = self
            .not_scanned()
            .iter()
            .filter(|place| deep(&place.why))
            .count();
        if skipped > 0 {
            let folders = if skipped == 1 { "folder" } else { "folders" };
            text.push_str(&format!("; {skipped} {folders} not looked into"));
        }
        text
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let why = match self.why {
            WhyLeftOut::Foreign => "of no known format",
            WhyLeftOut::NoDocument => "no document, and nothing speaks for a checkpoint",
            WhyLeftOut::Archive => "put aside, or a backup",
            WhyLeftOut::NoCheckpoint => "a host file without a checkpoint",
            WhyLeftOut::Link => "a symbolic link",
            WhyLeftOut::NotAFile => "no file",
        };
        write!(f, "{}: {why}", self.what)
    }
}

/// `65% (13/20)`, as far as it is known.
fn progress(row: &Row) -> String {
    let progress = &row.progress;
    let counts = progress
        .done
        .zip(progress.total)
        .filter(|(_, total)| *total > 0);
    match (progress.percent, counts) {
        (Some(percent), Some((done, total))) => format!("{percent}% ({done}/{total})"),
        (Some(percent), None) => format!("{percent}%"),
        (None, Some((done, total))) => format!("{done}/{total}"),
        (None, None) => "—".to_owned(),
    }
}

/// How many columns of a terminal a text takes.
fn width(text: &str) -> usize {
    text.graphemes(true).map(columns).sum()
}

/// How many columns a letter takes: two where its script or Unicode's table has it wide.
fn columns(letter: &str) -> usize {
    let is_wide = |first: char| {
        matches!(u32::from(first),
            0x1100..=0x115f | 0x2e80..=0x303e | 0x3041..=0xa4cf | 0xa960..=0xa97c | 0xac00..=0xd7a3
            | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff01..=0xff60 | 0xffe0..=0xffe6
            | 0x1f300..=0x1f64f | 0x1f680..=0x1f6ff | 0x1f900..=0x1f9ff | 0x20000..=0x3fffd)
    };
    let is_emoji = letter.contains('\u{fe0f}');
    if is_emoji || letter.chars().next().is_some_and(is_wide) {
        2
    } else {
        1
    }
}

fn short(text: &str) -> String {
    if width(text) <= WIDEST {
        return text.to_owned();
    }
    let start: String = fitting(text.graphemes(true)).collect();
    format!("{start}…")
}

/// The end of a path tells more than its start.
fn short_end(text: &str) -> String {
    if width(text) <= WIDEST {
        return text.to_owned();
    }
    let mut end: Vec<&str> = fitting(text.graphemes(true).rev()).collect();
    end.reverse();
    format!("…{}", end.concat())
}

/// The first letters of these that leave one column free.
fn fitting<'t>(letters: impl Iterator<Item = &'t str>) -> impl Iterator<Item = &'t str> {
    let mut left = WIDEST - 1;
    letters.take_while(move |letter| {
        let fits = columns(letter) <= left;
        left = left.saturating_sub(columns(letter));
        fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(width("abc"), 3);
        assert_eq!(width("写测试"), 6);
        assert_eq!(width("e\u{301}한"), 3);
        let long = "写".repeat(30);
        assert_eq!(
            (width(&short(&long)), short(&long).chars().count()),
            (39, 20)
        );
        assert_eq!(
            short_end(&long).chars().filter(|it| *it == '写').count(),
            19
        );
        assert_eq!(short_end(&"a".repeat(50)), format!("…{}", "a".repeat(39)));
    }
}
