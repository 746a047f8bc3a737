//! Texts of files in a table: nothing in them may break it, or be obeyed by a terminal.

use crate::redaction::Redaction;
use crate::shown;

/// A text as one line without what the redaction takes out, in which nothing hides, or works that is meant for a
/// terminal.
pub(super) fn plain(text: &str, redaction: Option<&Redaction>) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let redacted = redaction.and_then(|redaction| redaction.redact("", &line));
    shown::line(&redacted.unwrap_or(line))
}

/// A text that cannot break a markdown table.
pub(super) fn markdown(text: &str, redaction: Option<&Redaction>) -> String {
    shown::cell(&plain(text, redaction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_breaks_a_table_or_is_obeyed() {
        let text = "a|b\nc\r\n\u{1b}[31mred\u{7}\u{202e}x\\|";
        let plain = |text| plain(text, Some(&Redaction::secrets()));
        assert_eq!(plain(text), "a|b c \\u{1b}[31mred\\u{7}\\u{202e}x\\|");
        assert_eq!(
            plain("a\u{200b}\u{2060}\u{e0041}"),
            "a\\u{200b}\\u{2060}\\u{e0041}"
        );
        assert_eq!(plain("password=hunter2"), "password=[redacted: password]");
        let cell = markdown(text, None);
        assert!(!cell.contains('\n') && !cell.contains('\u{1b}'));
        // Every pipe is escaped by an odd number of backslashes.
        for (at, _) in cell.match_indices('|') {
            let before = cell[..at].chars().rev().take_while(|c| *c == '\\').count();
            assert_eq!(before % 2, 1, "{cell}");
        }
    }
}
