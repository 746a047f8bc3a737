//! Texts of files in a table: nothing in them may break it, or be obeyed by a terminal.

/// A text as one line in which nothing works that is meant for a terminal.
pub(super) fn plain(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        for char in word.chars() {
            if char.is_control() || turns_text(char) {
                line.extend(char.escape_unicode());
            } else {
                line.push(char);
            }
        }
    }
    line
}

/// A text that cannot break a markdown table.
pub(super) fn markdown(text: &str) -> String {
    plain(text).replace('\\', "\\\\").replace('|', "\\|")
}

/// Marks that turn the direction of what follows, so that it reads as something else.
fn turns_text(char: char) -> bool {
    matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_breaks_a_table_or_is_obeyed() {
        let text = "a|b\nc\r\n\u{1b}[31mred\u{7}\u{202e}x\\|";
        assert_eq!(plain(text), "a|b c \\u{1b}[31mred\\u{7}\\u{202e}x\\|");
        let cell = markdown(text);
        assert!(!cell.contains('\n') && !cell.contains('\u{1b}'));
        // Every pipe is escaped by an odd number of backslashes.
        for (at, _) in cell.match_indices('|') {
            let before = cell[..at].chars().rev().take_while(|c| *c == '\\').count();
            assert_eq!(before % 2, 1, "{cell}");
        }
    }
}
