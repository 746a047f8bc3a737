//! Texts of a checkpoint on one line for people.

use std::fmt;

/// So many characters of a text are shown.
const SHOWN: usize = 120;

/// A text on one line: what hides or works on a terminal is written out; a long text is shortened.
pub(super) struct Words<'t>(pub(super) &'t str);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0.chars())
    }
}

/// A JSON text on one line: the same, without white space outside of strings.
pub(super) struct Json<'t>(pub(super) &'t str);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut in_string, mut escaped) = (false, false);
        let tight = self.0.chars().filter(move |&char| {
            if in_string {
                in_string = escaped || char != '"';
                escaped = char == '\\' && !escaped;
                return true;
            }
            in_string = char == '"';
            !matches!(char, ' ' | '\t' | '\r' | '\n')
        });
        show(f, tight)
    }
}

/// A text, or a word for none.
pub(super) fn or_none(text: Option<&str>) -> Words<'_> {
    Words(text.unwrap_or("none"))
}

fn show(f: &mut fmt::Formatter<'_>, mut chars: impl Iterator<Item = char>) -> fmt::Result {
    for char in chars.by_ref().take(SHOWN) {
        if crate::shown::is_hidden(char) {
            write!(f, "{}", char.escape_default())?;
        } else {
            write!(f, "{char}")?;
        }
    }
    if chars.next().is_some() {
        f.write_str("…")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_nothing() {
        assert_eq!(
            Words("a\u{1b}[2J\nb\u{202e}é").to_string(),
            "a\\u{1b}[2J\\nb\\u{202e}é"
        );
        assert_eq!(Json("\"\u{9b}\"").to_string(), "\"\\u{9b}\"");
    }

    #[test]
    fn a_long_text_is_shortened() {
        let shown = Words(&"ab".repeat(1000)).to_string();
        assert_eq!(shown.chars().count(), SHOWN + 1);
        assert!(shown.ends_with("b…"));
        assert_eq!(Words(&"a".repeat(SHOWN)).to_string(), "a".repeat(SHOWN));
    }

    #[test]
    fn json_keeps_the_spaces_of_its_strings() {
        let text = "{\n  \"a b\": [ 1,\t\"\\\" \\\\\" , \" \" ]\r\n}";
        assert_eq!(Json(text).to_string(), "{\"a b\":[1,\"\\\" \\\\\",\" \"]}");
    }
}
