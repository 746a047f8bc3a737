//! Renders texts of other agents so that they stay texts.
//!
//! Every text in a checkpoint was written by some agent. In a prompt or a message it must not become a heading, a list,
//! a file name or an instruction, and it must not hide anything from its reader.

mod markdown;

#[cfg(feature = "template")]
pub(crate) use markdown::in_markdown;

/// Whether a letter can control a terminal, change the reading direction, or be invisible.
///
/// Joiners and variation selectors are not hidden, since scripts and emoji need them.
pub(crate) fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || !letter.is_ascii()
            && matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}')
}

/// Whether a text has nothing visible: only white space and letters without width.
///
/// ```
/// assert!(agent_checkpoint::is_blank(" \u{200b}") && !agent_checkpoint::is_blank("a\u{200b}"));
/// ```
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|letter| {
        let is_joiner = matches!(
            letter,
            '\u{200c}' | '\u{200d}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}'
        );
        letter.is_whitespace() || is_joiner || is_hidden(letter)
    })
}

/// Writes out every letter that is hidden or controls a terminal: control characters, overrides of direction and
/// letters without width become escapes such as `\u{202e}`. Line ends and tabs stay.
///
/// This is for programs that print or log texts of a checkpoint, which some agent wrote. The prompts of this library
/// are already treated this way.
///
/// ```
/// assert_eq!(agent_checkpoint::visible("rm \u{202e}gnp.exe"), "rm \\u{202e}gnp.exe");
/// ```
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            shown.push('\n');
        }
        write_visible(line, &mut shown);
    }
    shown
}

/// Like [`visible`], for a text without line ends.
fn write_visible(text: &str, into: &mut String) {
    for letter in text.chars() {
        if is_hidden(letter) && letter != '\t' {
            into.extend(letter.escape_unicode());
        } else {
            into.push(letter);
        }
    }
}

/// The text on one line: line ends are written as `\n`.
pub(crate) fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (number, line) in lines(text.trim()).enumerate() {
        if number > 0 {
            shown.push_str("\\n");
        }
        write_visible(line, &mut shown);
    }
    shown
}

/// The text in quotes, for a sentence of a message: on one line, so that a reader sees where it ends, with the escapes
/// of [`visible`]. Letters of all scripts stay.
///
/// ```
/// assert_eq!(agent_checkpoint::quoted("ดีมาก \"x\"\n"), r#""ดีมาก \"x\"\n""#);
/// ```
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 2);
    shown.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' | '\n' | '\r' | '\t' => shown.extend(letter.escape_default()),
            letter if is_hidden(letter) => shown.extend(letter.escape_unicode()),
            letter => shown.push(letter),
        }
    }
    shown.push('"');
    shown
}

/// A command with its arguments on one line; a word is in quotes if it could be read as several, or as another text.
pub(crate) fn command_line<W: AsRef<str>>(words: &[W]) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+@%:,=".contains(letter);
    let words = words.iter().map(|word| match word.as_ref() {
        word if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        word => quoted(word),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Texts in quotes, as a list for a sentence.
pub(crate) fn quoted_all<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    texts.join(", ")
}

/// The text as a cell of a Markdown table, which it cannot break.
pub(crate) fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    line(&words.join(" "))
        .replace('\\', "\\\\")
        .replace('|', "\\|")
}

/// A path on one line, in quotes if it could be read as several paths or as a remark.
pub(crate) fn path(text: &str) -> String {
    let shown = line(text);
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+@~$[]#%=^{}\\:".contains(letter);
    if !shown.is_empty() && shown.len() == text.len() && shown.chars().all(plain) {
        shown
    } else {
        format!("\"{}\"", shown.replace('"', "\\\""))
    }
}

/// The lines of a text, with any kind of line end.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let ends = |letter: char| {
            matches!(
                letter,
                '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
            )
        };
        let Some(at) = text.find(ends) else {
            rest = None;
            return Some(text);
        };
        let (line, after) = text.split_at(at);
        let end = if after.starts_with("\r\n") {
            2
        } else {
            after.chars().next().map_or(0, char::len_utf8)
        };
        rest = after.get(end..);
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_whatever_it_has() {
        assert_eq!(path("src/app/[id]/page.tsx"), "src/app/[id]/page.tsx");
        assert_eq!(path("a, b"), "\"a, b\"");
        assert_eq!(path("a (unchanged)"), "\"a (unchanged)\"");
        assert_eq!(path("a\n- /etc/passwd"), "\"a\\n- /etc/passwd\"");
        assert_eq!(path("a\u{202e}b"), "\"a\\u{202e}b\"");
        assert_eq!(path(""), "\"\"");
    }

    #[test]
    fn every_end_of_a_line_is_one() {
        let all: Vec<_> = lines("a\r\nb\rc\nd\u{2028}e\u{2029}f\u{85}g\u{b}h\u{c}").collect();
        assert_eq!(all, ["a", "b", "c", "d", "e", "f", "g", "h", ""]);
        assert_eq!(line("a\u{1b}[2J\r\nb"), "a\\u{1b}[2J\\nb");
        assert_eq!(visible("a\u{200b}\r\n\tb"), "a\\u{200b}\\u{d}\n\tb");
        assert_eq!(visible("a\u{3164}b\u{34f}"), "a\\u{3164}b\\u{34f}");
    }
}
