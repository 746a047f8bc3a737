//! Rewrites containers whose values changed, from their own pieces and separators.

use super::layout::{Shape, Style, between, colon, lay, lay_piece, lead, line_indent};
use super::tree::{Index, Kind, Tree};

/// The change of a value of the text. Indexes of new values belong to another tree.
#[derive(Debug)]
pub(super) enum Change {
    /// The value is replaced by another one.
    Replace(Index),
    /// The container gets these values, in this order.
    Inside(Vec<Item>),
}

/// One value of a changed container.
#[derive(Debug)]
pub(super) enum Item {
    /// An existing value of the container, with its change.
    Kept(Index, Option<Change>),
    /// A new value.
    New(Index),
}

/// A text that is to change, and the tree of the new values.
pub(super) struct Relay<'t> {
    pub(super) tree: &'t Tree,
    pub(super) new: &'t Tree,
    pub(super) style: &'t Style,
    /// The indent of the line on which the text begins.
    pub(super) first_indent: &'t str,
}

impl<'t> Relay<'t> {
    /// The whole text after the change of one value. `siblings` are the values of its container.
    pub(super) fn text(&self, index: Index, change: &Change, siblings: &[Index]) -> String {
        let span = self.tree.span(index);
        let text = &self.tree.text;
        let mut out = String::with_capacity(text.len() + self.new.text.len() + 64);
        out.push_str(&text[..span.start as usize]);
        self.render(&mut out, index, change, siblings);
        out.push_str(&text[span.end as usize..]);
        out
    }

    fn indent_of(&self, offset: usize) -> &'t str {
        if self.style.multiline {
            line_indent(&self.tree.text, offset, self.first_indent)
        } else {
            ""
        }
    }

    fn render(&self, out: &mut String, index: Index, change: &Change, siblings: &[Index]) {
        match change {
            Change::Replace(new) => {
                let shape = Shape::of_last(
                    self.tree,
                    siblings.iter().copied().filter(|&s| s != index),
                    self.new.kind(*new),
                );
                let indent = self.indent_of(self.tree.span(index).start as usize);
                lay(out, self.new, *new, self.style, shape.as_ref(), indent);
            }
            Change::Inside(items) => self.render_inside(out, index, items, siblings),
        }
    }

    fn render_inside(&self, out: &mut String, index: Index, items: &[Item], siblings: &[Index]) {
        let text = &self.tree.text;
        let span = self.tree.span(index);
        let open = span.start as usize;
        let close = span.end as usize - 1;
        out.push_str(&text[open..=open]);
        if !items.is_empty() {
            let values: Vec<Index> = self.tree.children(index).collect();
            let gaps = self.gaps(index, &values, items, siblings);
            out.push_str(&gaps.lead);
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    match item {
                        Item::Kept(child, _) => {
                            out.push_str(self.gap_before(&values, *child, &gaps))
                        }
                        Item::New(_) => out.push_str(&gaps.separator),
                    }
                }
                self.render_item(out, item, &values, &gaps);
            }
            out.push_str(&gaps.trail);
        }
        out.push_str(&text[close..=close]);
    }

    fn render_item(&self, out: &mut String, item: &Item, values: &[Index], gaps: &Gaps) {
        match item {
            Item::Kept(child, None) => {
                let span = self.tree.span(*child);
                out.push_str(&self.tree.text[span.piece_start()..span.end as usize]);
            }
            Item::Kept(child, Some(change)) => {
                let span = self.tree.span(*child);
                out.push_str(&self.tree.text[span.piece_start()..span.start as usize]);
                self.render(out, *child, change, values);
            }
            Item::New(new) => {
                let shape = Shape::of_last(self.tree, values.iter().copied(), self.new.kind(*new));
                let own_colon = values.last().and_then(|&last| colon(self.tree, last));
                match own_colon {
                    Some(own) if own != self.style.colon => {
                        let style = Style {
                            colon: own.to_owned(),
                            ..self.style.clone()
                        };
                        lay_piece(out, self.new, *new, &style, shape.as_ref(), &gaps.indent);
                    }
                    _ => lay_piece(
                        out,
                        self.new,
                        *new,
                        self.style,
                        shape.as_ref(),
                        &gaps.indent,
                    ),
                }
            }
        }
    }

    /// The separator before a kept value that is not the first: its own, unless it was the first value before.
    fn gap_before<'g>(&'g self, values: &[Index], child: Index, gaps: &'g Gaps) -> &'g str {
        match values.binary_search(&child) {
            Ok(position) if position > 0 => between(self.tree, values[position - 1], child),
            _ => &gaps.separator,
        }
    }

    fn gaps(&self, index: Index, values: &[Index], items: &[Item], siblings: &[Index]) -> Gaps {
        let span = self.tree.span(index);
        let base = self.indent_of(span.start as usize);
        let Some(&last) = values.last() else {
            return self.gaps_of_empty(index, base, items, siblings);
        };
        let lead = lead(self.tree, index).unwrap_or_default();
        let separator = match values {
            [.., before, last] => between(self.tree, *before, *last).to_owned(),
            _ if lead.contains('\n') => format!(",{lead}"),
            _ if self.style.multiline => ", ".to_owned(),
            _ => self.style.comma.clone(),
        };
        Gaps {
            separator,
            trail: self.tree.text[self.tree.span(last).end as usize..span.end as usize - 1]
                .to_owned(),
            indent: match lead.rsplit_once('\n') {
                Some((_, indent)) => indent.to_owned(),
                None => base.to_owned(),
            },
            lead: lead.to_owned(),
        }
    }

    fn gaps_of_empty(&self, index: Index, base: &str, items: &[Item], siblings: &[Index]) -> Gaps {
        let kind = self.tree.kind(index);
        let shape = Shape::of_last(self.tree, siblings.iter().copied(), kind);
        if let Some((pad, comma)) = shape.and_then(|shape| shape.flat_separators()) {
            return Gaps {
                lead: pad.to_owned(),
                separator: comma.to_owned(),
                trail: pad.to_owned(),
                indent: base.to_owned(),
            };
        }
        let plain = kind == Kind::Array
            && items.iter().all(|item| match item {
                Item::New(new) => !self.new.kind(*new).is_container(),
                Item::Kept(..) => false,
            });
        if !self.style.multiline || (plain && self.style.flat_lists && shape.is_none()) {
            return Gaps {
                lead: String::new(),
                separator: self.style.comma.clone(),
                trail: String::new(),
                indent: base.to_owned(),
            };
        }
        let indent = format!("{base}{}", self.style.unit);
        let lead = format!("{}{indent}", self.style.newline);
        Gaps {
            separator: format!(",{lead}"),
            trail: format!("{}{base}", self.style.newline),
            lead,
            indent,
        }
    }
}

/// The text around the values of a container.
struct Gaps {
    /// After the opening bracket.
    lead: String,
    /// Between two values, where the text has no separator of its own.
    separator: String,
    /// Before the closing bracket.
    trail: String,
    /// The indent of the line on which a new value starts.
    indent: String,
}
