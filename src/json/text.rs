//! Escapes and unescapes JSON strings.

use std::borrow::Cow;

/// The value of four hexadecimal digits at `at`.
pub(super) fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |value, &digit| {
        Some(value * 16 + char::from(digit).to_digit(16)?)
    })
}

/// The meaning of one `\u` escape.
pub(super) enum Escape {
    /// A character, from one escape or a surrogate pair, and the bytes of text that it takes.
    Char { char: char, length: usize },
    /// Half of a surrogate pair.
    Lone,
    /// Not four hexadecimal digits.
    Bad,
}

/// Reads the `\u` escape whose backslash is at `at`.
pub(super) fn unicode_escape(bytes: &[u8], at: usize) -> Escape {
    let Some(unit) = hex4(bytes, at + 2) else {
        return Escape::Bad;
    };
    if let Some(char) = char::from_u32(unit) {
        return Escape::Char { char, length: 6 };
    }
    let follows = bytes.get(at + 6..at + 8) == Some(b"\\u");
    let low = if follows { hex4(bytes, at + 8) } else { None };
    match low {
        Some(low @ 0xDC00..=0xDFFF) if unit < 0xDC00 => {
            let scalar = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            match char::from_u32(scalar) {
                Some(char) => Escape::Char { char, length: 12 },
                None => Escape::Lone,
            }
        }
        _ => Escape::Lone,
    }
}

/// The characters of a string, from the well-formed text between its quotes.
///
/// Half of a surrogate pair is no character. Its escape is kept in lower case, so that names that differ only there
/// still differ.
pub(super) fn unescape(inner: &str) -> Cow<'_, str> {
    let Some(first) = inner.find('\\') else {
        return Cow::Borrowed(inner);
    };
    let bytes = inner.as_bytes();
    let mut plain = String::with_capacity(inner.len());
    plain.push_str(&inner[..first]);
    let mut at = first;
    while at < bytes.len() {
        let run = inner[at..].find('\\').unwrap_or(inner.len() - at);
        plain.push_str(&inner[at..at + run]);
        at += run;
        let Some(&letter) = bytes.get(at + 1) else {
            break;
        };
        if letter == b'u' {
            match unicode_escape(bytes, at) {
                Escape::Char { char, length } => {
                    plain.push(char);
                    at += length;
                }
                Escape::Lone | Escape::Bad => {
                    let end = (at + 6).min(inner.len());
                    plain.push_str(&inner[at..end].to_ascii_lowercase());
                    at = end;
                }
            }
            continue;
        }
        plain.push(match letter {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            other => char::from(other),
        });
        at += 2;
    }
    Cow::Owned(plain)
}

/// The text of a string as JSON, with its quotes.
pub(super) fn quote(plain: &str) -> String {
    let mut quoted = String::with_capacity(plain.len() + 2);
    quoted.push('"');
    for char in plain.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            control if control < ' ' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether JSON takes this byte for white space.
pub(super) fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a word is a JSON number.
pub(super) fn is_number(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").unwrap_or(word);
    let digits = |from: usize| {
        let rest = word.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = digits(0);
    if at == 0 || (at > 1 && word[0] == b'0') {
        return false;
    }
    if word.get(at) == Some(&b'.') {
        let end = digits(at + 1);
        if end == at + 1 {
            return false;
        }
        at = end;
    }
    if matches!(word.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(word.get(at + 1), Some(b'+' | b'-')));
        let end = digits(at + 1 + sign);
        if end == at + 1 + sign {
            return false;
        }
        at = end;
    }
    at == word.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_characters() {
        assert_eq!(unescape(r#"a\"\\\/\b\f\n\r\t"#), "a\"\\/\u{8}\u{c}\n\r\t");
        assert_eq!(unescape(r"\u00e9\uD83D\uDE00!"), "é😀!");
        assert!(matches!(unescape("plain é"), Cow::Borrowed(_)));
    }

    #[test]
    fn half_a_pair_keeps_its_escape() {
        assert_eq!(unescape(r"a\uD800b"), r"a\ud800b");
        assert_eq!(unescape(r"\uDE00\uD83D"), r"\ude00\ud83d");
        assert_eq!(unescape(r"\uD83D\u0041"), r"\ud83dA");
    }

    #[test]
    fn quoting_is_what_serde_json_does() {
        let all: String = (0..0x250).filter_map(char::from_u32).collect();
        assert_eq!(quote(&all), serde_json::to_string(&all).unwrap());
    }
}
