//! How people and programs lay out the same JSON.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::tree::Tree;

/// How a text is laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// What a level is indented by; `None` puts all on one line.
    pub(super) indent: Option<&'static str>,
    pub(super) last_line_end: bool,
    pub(super) crlf: bool,
    /// Whether it begins with a byte order mark.
    pub(super) mark: bool,
    /// Whether all beyond ASCII is escaped, as Python does it unless told otherwise.
    pub(super) ascii: bool,
}

/// All on one line, with nothing around it.
pub(super) const COMPACT: Style = Style {
    indent: None,
    last_line_end: false,
    crlf: false,
    mark: false,
    ascii: false,
};

/// One of the layouts, as often as [`restyled`] says.
pub(super) fn style() -> impl Strategy<Value = Style> {
    let indents = vec![Some("  "), Some("  "), Some("    "), Some("\t"), None];
    (
        select(indents),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        proptest::bool::weighted(0.25),
    )
        .prop_map(|(indent, last_line_end, crlf, mark, ascii)| Style {
            indent,
            last_line_end,
            crlf,
            mark,
            ascii,
        })
}

/// The same without a byte order mark, which is a violation.
pub(super) fn style_without_mark() -> impl Strategy<Value = Style> {
    style().prop_map(|style| Style {
        mark: false,
        ..style
    })
}

/// The text of a value in one of the styles that people and programs write: two spaces (2 of 5), four
/// spaces, tabs, one line (1 of 5 each); with CRLF, with a byte order mark, with a last line end (1 of
/// 2 each); with all beyond ASCII escaped (1 of 4).
///
/// It shrinks to two spaces and LF, with nothing before or after.
pub fn restyled(value: Value) -> impl Strategy<Value = String> {
    let tree = Tree::of(&value);
    style().prop_map(move |style| tree.write(&style))
}
