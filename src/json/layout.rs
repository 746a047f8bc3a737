//! Lays out new text in the style of the file around it.

use super::tree::{Index, Kind, NONE, ROOT, Tree};

/// The style of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) newline: &'static str,
    /// The indent of one level.
    pub(super) unit: String,
    /// Whether the values of containers have their own lines.
    pub(super) multiline: bool,
    /// The text between a name and its value.
    pub(super) colon: String,
    /// The text between two values on one line.
    pub(super) comma: String,
    /// Whether arrays without nested containers are on one line.
    pub(super) flat_lists: bool,
}

impl Style {
    /// The style of a new file: two spaces, each value on its own line.
    pub(super) fn fresh() -> Style {
        Style {
            newline: "\n",
            unit: "  ".into(),
            multiline: true,
            colon: ": ".into(),
            comma: ", ".into(),
            flat_lists: false,
        }
    }

    /// The style of a text; what cannot be derived from it is as in a new file.
    pub(super) fn of(tree: &Tree) -> Style {
        let fresh = Style::fresh();
        let lead = lead(tree, ROOT).unwrap_or_default();
        let multiline = lead.contains('\n') || tree.is_empty(ROOT);
        let unit = match lead.rsplit_once('\n') {
            Some((_, unit)) if !unit.is_empty() => unit.to_owned(),
            _ => fresh.unit,
        };
        let mut members = tree.children(ROOT);
        let first = members.next();
        let colon = first
            .and_then(|first| colon(tree, first))
            .unwrap_or(&fresh.colon);
        let comma = match (first, members.next()) {
            (Some(first), Some(second)) if !multiline => between(tree, first, second),
            _ if multiline || colon.ends_with(' ') => &fresh.comma,
            _ => ",",
        };
        Style {
            newline: newline(&tree.text),
            unit,
            multiline,
            colon: colon.to_owned(),
            comma: comma.to_owned(),
            flat_lists: has_flat_lists(tree),
        }
    }

    /// The same style with everything on one line.
    fn flat(&self, shape: &Shape<'_>) -> Style {
        Style {
            multiline: false,
            colon: shape.colon.unwrap_or(&self.colon).to_owned(),
            comma: shape.comma.to_owned(),
            ..self.clone()
        }
    }
}

/// The line end of a text: that of its first line.
fn newline(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((line, _)) if line.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Whether most arrays of plain values are on one line.
fn has_flat_lists(tree: &Tree) -> bool {
    let (mut flat, mut tall) = (0, 0);
    for index in 0..tree.spans.len() as Index {
        if tree.kind(index) == Kind::Array && is_plain_list(tree, index) {
            match lead(tree, index) {
                Some(lead) if lead.contains('\n') => tall += 1,
                Some(_) => flat += 1,
                None => {}
            }
        }
    }
    flat > tall
}

fn is_plain_list(tree: &Tree, array: Index) -> bool {
    let mut elements = tree.children(array);
    elements.all(|element| !tree.kind(element).is_container())
}

/// The text between the opening bracket and the first value; none for an empty container.
pub(super) fn lead(tree: &Tree, container: Index) -> Option<&str> {
    let first = tree.children(container).next()?;
    let start = tree.span(container).start as usize + 1;
    tree.text.get(start..tree.span(first).piece_start())
}

/// The text between the end of one value and the start of a later one.
pub(super) fn between(tree: &Tree, earlier: Index, later: Index) -> &str {
    &tree.text[tree.span(earlier).end as usize..tree.span(later).piece_start()]
}

/// The text between the name of a member and its value.
pub(super) fn colon(tree: &Tree, member: Index) -> Option<&str> {
    let span = tree.span(member);
    (span.name != NONE).then(|| &tree.text[span.name_end as usize..span.start as usize])
}

/// The shape of a container, for new containers beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'t> {
    /// Whether the container is on one line.
    flat: bool,
    /// The padding inside the brackets of a container on one line.
    pad: &'t str,
    colon: Option<&'t str>,
    comma: &'t str,
}

impl<'t> Shape<'t> {
    /// The shape of the last container of this kind among the values.
    pub(super) fn of_last(
        tree: &'t Tree,
        mut values: impl DoubleEndedIterator<Item = Index>,
        kind: Kind,
    ) -> Option<Shape<'t>> {
        if !kind.is_container() {
            return None;
        }
        let container = values.rfind(|&v| tree.kind(v) == kind && !tree.is_empty(v))?;
        let mut inside = tree.children(container);
        let (first, second) = (inside.next()?, inside.next());
        let flat = !tree.raw(container).contains('\n');
        Some(Shape {
            flat,
            pad: if flat { lead(tree, container)? } else { "" },
            colon: colon(tree, first),
            comma: second.map_or(", ", |second| between(tree, first, second)),
        })
    }

    /// The padding and separator of a container on one line; none if its values have their own lines.
    pub(super) fn flat_separators(&self) -> Option<(&'t str, &'t str)> {
        self.flat.then_some((self.pad, self.comma))
    }
}

/// Writes a value of another tree in this style. `indent` is the indent of the line on which the value starts.
pub(super) fn lay(
    out: &mut String,
    source: &Tree,
    index: Index,
    style: &Style,
    shape: Option<&Shape<'_>>,
    indent: &str,
) {
    let kind = source.kind(index);
    if !kind.is_container() || source.is_empty(index) {
        out.push_str(source.raw(index));
        return;
    }
    match shape {
        Some(shape) if shape.flat => {
            let style = style.flat(shape);
            lay_inside(out, source, index, &style, shape.pad, indent);
        }
        Some(_) if kind == Kind::Array && style.flat_lists => {
            let tall = Style {
                flat_lists: false,
                ..style.clone()
            };
            lay_inside(out, source, index, &tall, "", indent);
        }
        _ => lay_inside(out, source, index, style, "", indent),
    }
}

fn lay_inside(
    out: &mut String,
    source: &Tree,
    container: Index,
    style: &Style,
    pad: &str,
    indent: &str,
) {
    let array = source.kind(container) == Kind::Array;
    let flat = !style.multiline || (array && style.flat_lists && is_plain_list(source, container));
    let inner = format!("{indent}{}", style.unit);
    out.push(if array { '[' } else { '{' });
    out.push_str(pad);
    for (position, child) in source.children(container).enumerate() {
        if position > 0 {
            out.push_str(if flat { &style.comma } else { "," });
        }
        if !flat {
            out.push_str(style.newline);
            out.push_str(&inner);
        }
        lay_piece(out, source, child, style, None, &inner);
    }
    if !flat {
        out.push_str(style.newline);
        out.push_str(indent);
    }
    out.push_str(pad);
    out.push(if array { ']' } else { '}' });
}

/// Writes a member with its name, or an element.
pub(super) fn lay_piece(
    out: &mut String,
    source: &Tree,
    child: Index,
    style: &Style,
    shape: Option<&Shape<'_>>,
    indent: &str,
) {
    if source.span(child).name != NONE {
        out.push_str(source.raw_name(child));
        out.push_str(&style.colon);
    }
    lay(out, source, child, style, shape, indent);
}

/// The white space at the start of the line with this offset. `first` is the answer for the first line, which may start
/// in the middle of a line of a file.
pub(super) fn line_indent<'t>(text: &'t str, offset: usize, first: &'t str) -> &'t str {
    let Some(newline) = text[..offset].rfind('\n') else {
        return first;
    };
    let line = &text[newline + 1..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}
