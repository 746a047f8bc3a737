//! Renders a text inside Markdown so that it cannot open a block.

#![cfg_attr(
    not(feature = "template"),
    allow(dead_code, reason = "only prompts are Markdown")
)]

use super::{lines, write_visible};

/// The beginning of every further line: no mark of Markdown, in any dialect.
const BAR: &str = "\n  │ ";

/// Renders a text for a prompt or message.
///
/// Its first line opens no block, wherever it is placed. Each further line begins with a bar, so that it continues the
/// paragraph or list item of the first, and a reader sees that it belongs to it. An empty text is rendered as
/// `(empty)`, since an empty list item would turn the line before it into a heading.
pub(crate) fn in_markdown(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for (number, line) in lines(text).enumerate() {
        let line = line.trim_end();
        if number == 0 {
            let mut first = String::with_capacity(line.len() + 1);
            write_visible(line.trim_start(), &mut first);
            escape_start(&first, text, &mut shown);
        } else {
            shown.push_str(BAR);
            write_visible(line, &mut shown);
            // A line break that is escaped or follows spaces would be a hard break.
            shown.truncate(shown.trim_end_matches(' ').len());
        }
    }
    shown
}

/// Escapes the beginning of a line that would open a block.
fn escape_start(line: &str, whole: &str, into: &mut String) {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let after_digits = line.get(digits..).unwrap_or_default();
    if digits > 0 && after_digits.starts_with(['.', ')']) && ends_marker(after_digits.get(1..)) {
        into.push_str(line.get(..digits).unwrap_or_default());
        into.push('\\');
        into.push_str(after_digits);
        return;
    }
    let rest = line.get(1..);
    let opens = match line.bytes().next() {
        // Headings, quotes, HTML; definitions.
        Some(b'#' | b'>' | b'<' | b':') => true,
        // Fences.
        Some(b'`') => line.starts_with("```"),
        Some(b'~') => line.starts_with("~~~"),
        // Items of lists.
        Some(b'-' | b'+' | b'*') => ends_marker(rest) || is_rule(line),
        // Definitions of links, which vanish; their labels may go over several lines.
        Some(b'[') => whole.contains("]:"),
        // Breaks, underlines of headings, tables.
        Some(b'_' | b'=' | b'|') => is_rule(line),
        _ => false,
    };
    if opens {
        into.push('\\');
    }
    into.push_str(line);
}

/// Whether a list mark is followed by a space, a tab or nothing, which makes it a list item.
fn ends_marker(rest: Option<&str>) -> bool {
    rest.is_none_or(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Whether the line consists only of characters that draw rules, underlines and tables.
fn is_rule(line: &str) -> bool {
    line.bytes().all(|byte| b"-_*=:|+ \t".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_texts_stay_as_they_are() {
        for text in [
            "Wire toggle to ThemeContext",
            "__tests__/a.rs is red",
            "-v was given",
            "*.test.ts",
            "[id] is a route",
            "`cargo test` passes",
            "2026 was a year",
            "1.5 is a number",
            "Vec<String>, a & b, 50 % | x",
            "👩‍👩‍👧 می‌خواهم",
        ] {
            assert_eq!(in_markdown(text), text);
        }
    }

    #[test]
    fn what_would_open_a_block_is_escaped() {
        for (text, shown) in [
            ("# x", "\\# x"),
            ("  > x", "\\> x"),
            ("- x", "\\- x"),
            ("-", "\\-"),
            ("---", "\\---"),
            ("===", "\\==="),
            ("_ _ _", "\\_ _ _"),
            ("1. x", "1\\. x"),
            ("12)\tx", "12\\)\tx"),
            ("```rust", "\\```rust"),
            ("~~~", "\\~~~"),
            ("<div>", "\\<div>"),
            ("[a]: /b", "\\[a]: /b"),
            ("[a\nb]: /c", "\\[a\n  │ b]: /c"),
            ("|---|", "\\|---|"),
            ("", "(empty)"),
            (" \t\n", "(empty)"),
            ("a\r\n# b\r\n\r\nc", "a\n  │ # b\n  │\n  │ c"),
            ("a\u{2028}# b", "a\n  │ # b"),
            ("\u{1b}[2J\u{202e}x", "\\u{1b}[2J\\u{202e}x"),
        ] {
            assert_eq!(in_markdown(text), shown, "{text:?}");
        }
    }
}
