//! Tables of a fleet: one for a terminal, and the STATUS table in Markdown.

use agent_checkpoint::Timestamp;
use agent_checkpoint::fleet::{Fleet, Row, RowState, SkipReason};
use agent_checkpoint::formats::FUTURE_TOLERANCE;
use chrono::{DateTime, TimeDelta, Utc};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::output::one_line;
use crate::report::{Style, lines};

const HEADER: [&str; 10] = [
    "AGENT", "TASK", "PROGRESS", "PHASE", "UPDATED", "RESULT", "OWNER", "ELAPSED", "LEFT", "FILE",
];
/// The widest cell, in columns.
const WIDEST: usize = 40;
/// The text of an empty cell.
const NONE: &str = "—";

// ---------------------------------------------------------------------------------------------------------------------
// For a terminal

/// The table, the findings and the totals.
pub(super) fn table(fleet: &Fleet) -> String {
    let mut text = String::new();
    if !fleet.rows().is_empty() {
        let mut table = Style::plain().table(&HEADER);
        for row in fleet.rows() {
            table.add_row(cells(row, fleet.now()));
        }
        for line in lines(&table) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    for finding in fleet.findings() {
        text.push_str(&format!("! {}\n", one_line(&finding.to_string())));
    }
    text.push_str(&summary(fleet));
    text.push('\n');
    text
}

fn cells(row: &Row, now: DateTime<Utc>) -> [String; 10] {
    let text = |text: Option<&String>| short(&one_line(text.map_or(NONE, |text| text)));
    let span = |time: Option<TimeDelta>| time.map_or_else(|| NONE.to_owned(), span);
    let owner = row.owner.as_ref().filter(|owner| owner.stands);
    let place = one_line(&row.place.to_string());
    [
        text(row.agent.as_ref()),
        match &row.task {
            Some(_) => text(row.task.as_ref()),
            None => short_end(&place),
        },
        progress(row),
        text(row.phase.as_ref()),
        short(&one_line(&age(row.updated_at.as_ref(), now))),
        result(row),
        text(owner.map(|owner| &owner.name)),
        span(row.progress.elapsed),
        span(row.progress.rest),
        place,
    ]
}

/// The result, or what the task waits for, or that repeated attempts failed.
fn result(row: &Row) -> String {
    match &row.waiting {
        Some(waiting) => format!("waits {waiting}"),
        None if is_poisoned(row) => "poisoned".to_owned(),
        None => row.result().replace('_', " "),
    }
}

/// Whether the plan of a row refuses the task because repeated attempts failed.
pub(in crate::verbs) fn is_poisoned(row: &Row) -> bool {
    row.next.as_ref().is_some_and(|next| next.poisoned)
}

/// The progress, such as `65% (13/20)`, as far as it is known.
pub(in crate::verbs) fn progress(row: &Row) -> String {
    let counts = row.progress.done.zip(row.progress.total);
    let counts = counts.filter(|(_, total)| *total > 0);
    match (row.progress.percent, counts) {
        (Some(percent), Some((done, total))) => format!("{percent}% ({done}/{total})"),
        (Some(percent), None) => format!("{percent}%"),
        (None, Some((done, total))) => format!("{done}/{total}"),
        (None, None) => NONE.to_owned(),
    }
}

/// The summary in one line, such as `3 rows: 1 active, 2 late; 45% done`.
pub(in crate::verbs) fn summary(fleet: &Fleet) -> String {
    let totals = fleet.totals();
    let mut text = match totals.rows {
        0 => "no checkpoints".to_owned(),
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    };
    let results = totals.results.iter();
    let results: Vec<String> = results
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
    let (mut archives, mut files, mut folders) = (0, 0, 0);
    for skipped in fleet.skipped() {
        match &skipped.why {
            SkipReason::Archive => archives += 1,
            SkipReason::Ignored => {}
            why if why.is_of_folder() => folders += 1,
            _ => files += 1,
        }
    }
    if archives > 0 {
        text.push_str(&format!("; {archives} archived"));
    }
    if files > 0 {
        text.push_str(&format!("; {files} other .json skipped"));
    }
    if folders > 0 {
        let word = if folders == 1 { "folder" } else { "folders" };
        text.push_str(&format!("; {folders} {word} not scanned"));
    }
    text
}

/// How long ago a stamp was, such as `2 min ago`. A stamp that is no time, or in the future, is shown as it is.
pub(in crate::verbs) fn age(stamp: Option<&Timestamp>, now: DateTime<Utc>) -> String {
    let Some(stamp) = stamp else {
        return NONE.to_owned();
    };
    let Some(time) = stamp.time() else {
        return stamp.to_string();
    };
    let age = now.signed_duration_since(time);
    match age.num_minutes() {
        _ if age < -FUTURE_TOLERANCE => stamp.to_string(),
        ..=0 => "just now".to_owned(),
        minutes @ 1..60 => format!("{minutes} min ago"),
        minutes @ 60..1440 => format!("{} h ago", minutes / 60),
        minutes => format!("{} d ago", minutes / 1440),
    }
}

/// A length of time, such as `3 h 20 min` or `2 d`.
pub(in crate::verbs) fn span(span: TimeDelta) -> String {
    let seconds = span.num_seconds().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) if minutes % 60 == 0 => format!("{hours} h"),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ if hours % 24 == 0 => format!("{days} d"),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// A text, cut at its end if it is too long for a cell.
fn short(text: &str) -> String {
    if text.width() <= WIDEST {
        return text.to_owned();
    }
    format!("{}…", fitting(text.graphemes(true)).concat())
}

/// A path, cut at its start if it is too long for a cell: its end says more.
fn short_end(text: &str) -> String {
    if text.width() <= WIDEST {
        return text.to_owned();
    }
    let mut end = fitting(text.graphemes(true).rev());
    end.reverse();
    format!("…{}", end.concat())
}

/// The first characters that leave one column free.
fn fitting<'t>(letters: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut columns = 0;
    let fits = |letter: &&str| {
        columns += letter.width();
        columns < WIDEST
    };
    letters.take_while(fits).collect()
}

// ---------------------------------------------------------------------------------------------------------------------
// In Markdown

/// The STATUS table of the sitebuilder protocol, for checkpoints of any format, with the findings below. The verdict
/// follows the checkpoint's own status, as in `in_progress (late)`.
pub(super) fn markdown(fleet: &Fleet) -> String {
    let mut text = "## Active Checkpoints\n\n\
        | Agent | Task | Progress | Last Update | Status |\n\
        |-------|------|----------|-------------|--------|\n"
        .to_owned();
    for row in fleet.rows() {
        let task = row.task.clone().unwrap_or_else(|| match row.state {
            RowState::Missing => NONE.to_owned(),
            _ => row.place.to_string(),
        });
        // An agent that does not count its steps has no percentage, rather than 0 %.
        let progress = match (&row.state, row.progress.percent) {
            (RowState::NotStarted, _) => "0%".to_owned(),
            (_, Some(percent)) => format!("{percent}%"),
            (RowState::Checkpoint { .. }, None) => "unknown".to_owned(),
            _ => NONE.to_owned(),
        };
        let result = result(row);
        let status = match (&row.status, row.result()) {
            (Some(status), _) if row.waiting.is_some() || is_poisoned(row) => {
                format!("{status} ({result})")
            }
            (Some(status), "active" | "finished" | "blocked" | "waiting") => status.clone(),
            (Some(status), _) => format!("{status} ({result})"),
            (None, _) => result,
        };
        text.push_str(&format!(
            "| {} | {} | {progress} | {} | {} |\n",
            cell(row.agent.as_deref().unwrap_or(NONE)),
            cell(&task),
            cell(&age(row.updated_at.as_ref(), fleet.now())),
            cell(&status),
        ));
    }
    if !fleet.findings().is_empty() {
        text.push_str("\n## Findings\n\n");
        for finding in fleet.findings() {
            text.push_str(&format!("- {}\n", cell(&finding.to_string())));
        }
    }
    text
}

/// A text that cannot break a Markdown table.
fn cell(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_take_two_columns() {
        let long = "写".repeat(30);
        assert_eq!(short(&long).width(), 39);
        assert_eq!(short(&long), format!("{}…", "写".repeat(19)));
        assert_eq!(short_end(&long), format!("…{}", "写".repeat(19)));
        assert_eq!(short_end(&"a".repeat(50)), format!("…{}", "a".repeat(39)));
        let fits = "e\u{301}한".repeat(13);
        assert_eq!(short(&fits), fits);
    }

    #[test]
    fn no_text_breaks_a_markdown_table() {
        let cell = cell("a|b\nc\r\n\u{1b}[31mred\u{7}\u{202e}x\\| password=hunter2");
        assert_eq!(
            cell,
            "a\\|b c \\\\u{1b}[31mred\\\\u{7}\\\\u{202e}x\\\\\\| password=[redacted: password]"
        );
    }

    #[test]
    fn spans_leave_out_what_is_zero() {
        for (minutes, text) in [
            (0, "0 s"),
            (20, "20 min"),
            (200, "3 h 20 min"),
            (180, "3 h"),
            (2880, "2 d"),
            (3000, "2 d 2 h"),
        ] {
            assert_eq!(span(TimeDelta::minutes(minutes)), text);
        }
    }
}
