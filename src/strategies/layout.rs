//! Layouts in which people and programs write the same JSON.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

/// A layout of a text.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The indent of one level; `None` puts everything on one line.
    indent: Option<&'static str>,
    last_line_end: bool,
    crlf: bool,
    byte_order_mark: bool,
    /// Whether characters beyond ASCII are escaped, as Python does by default.
    ascii: bool,
}

prop_compose! {
    /// One of the layouts, as frequent as [`restyled`] states.
    pub(super) fn layout()(
        indent in select(vec![Some("  "), Some("  "), Some("    "), Some("\t"), None]),
        last_line_end in any::<bool>(),
        crlf in any::<bool>(),
        byte_order_mark in any::<bool>(),
        ascii in proptest::bool::weighted(0.25),
    ) -> Layout {
        Layout { indent, last_line_end, crlf, byte_order_mark, ascii }
    }
}

/// One of the layouts without a byte order mark, which is a violation.
pub(super) fn layout_without_mark() -> impl Strategy<Value = Layout> {
    layout().prop_map(|layout| Layout {
        byte_order_mark: false,
        ..layout
    })
}

/// The text of a value in one of the layouts that people and programs write: two spaces (2 of 5), four spaces, tabs,
/// one line (1 of 5 each); CRLF, a byte order mark, a final line end (1 of 2 each); characters beyond ASCII escaped (1
/// of 4).
///
/// It shrinks to two spaces and LF, with nothing before or after.
pub fn restyled(value: Value) -> impl Strategy<Value = String> {
    layout().prop_map(move |layout| layout.of(&value.to_string()))
}

impl Layout {
    /// Lays out JSON: the same strings, numbers and words, with other white space between them.
    pub(super) fn of(&self, json: &str) -> String {
        let mut text = String::new();
        let mut depth = 0;
        let mut rest = json.trim();
        while let Some(first) = rest.chars().next() {
            let length = if first == '"' {
                string_length(rest)
            } else {
                first.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            rest = after.trim_start();
            match first {
                '{' | '[' if !rest.starts_with(['}', ']']) => {
                    depth += 1;
                    text.push(first);
                    self.new_line(depth, &mut text);
                }
                '}' | ']' if !text.ends_with(['{', '[']) => {
                    depth -= 1;
                    self.new_line(depth, &mut text);
                    text.push(first);
                }
                ',' => {
                    text.push(first);
                    self.new_line(depth, &mut text);
                }
                ':' => text.push_str(if self.indent.is_some() { ": " } else { ":" }),
                _ => text.push_str(token),
            }
        }
        if self.last_line_end {
            text.push('\n');
        }
        if self.crlf {
            // Line ends occur only between values: in a JSON string they are escaped.
            text = text.replace('\n', "\r\n");
        }
        if self.ascii {
            text = escaped(&text);
        }
        if self.byte_order_mark {
            text.insert(0, '\u{feff}');
        }
        text
    }

    fn new_line(&self, depth: usize, text: &mut String) {
        if let Some(indent) = self.indent {
            text.push('\n');
            text.push_str(&indent.repeat(depth));
        }
    }
}

/// The length of the JSON string at the start of a text, with its quotes.
fn string_length(json: &str) -> usize {
    let mut escaped = false;
    let end = json.char_indices().skip(1).find(|&(_, letter)| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    });
    end.map_or(json.len(), |(position, quote)| position + quote.len_utf8())
}

/// Escapes characters beyond ASCII as `\u` and four hexadecimal digits.
fn escaped(json: &str) -> String {
    let units = |letter: char| {
        let mut units = [0; 2];
        let units = letter.encode_utf16(&mut units);
        units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
    };
    json.chars()
        .map(|letter| match letter {
            '\0'..='\x7f' => letter.to_string(),
            _ => units(letter),
        })
        .collect()
}
