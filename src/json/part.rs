//! Extracts a part of a file as its own document, and puts it back.

use super::document::{Document, Host};
use super::edit_error::{EditError, EditProblem};
use super::layout::{Style, lay, line_indent};
use super::pointer;
use super::tree::{Index, Kind, ROOT, Tree};

impl Document {
    /// Extracts the object at `pointer` as its own document; none if there is no object.
    ///
    /// The text is the exact slice of this document. The part remembers its place: violations and errors have pointers
    /// of the file (see [`Document::at`]), and edits are laid out as in the file.
    #[must_use]
    pub fn extract(&self, pointer: &str) -> Option<Document> {
        let index = self.tree.find(pointer)?;
        if self.tree.kind(index) != Kind::Object {
            return None;
        }
        let start = self.tree.span(index).start as usize;
        let tree = Tree::from_text(self.tree.raw(index).to_owned()).ok()?;
        let host = Host {
            at: self.full(pointer),
            indent: line_indent(&self.tree.text, start, self.first_indent()).to_owned(),
            style: self.style(),
        };
        Some(Document {
            tree,
            host: Some(Box::new(host)),
        })
    }

    /// Puts the text of another document at `pointer`, in place of the value there or as a new member of an object.
    /// Returns whether a byte changed.
    ///
    /// The text stays unchanged if it was [extracted](Document::extract) from a place with the same indent in a file of
    /// the same style; otherwise its lines are indented to fit.
    ///
    /// # Errors
    ///
    /// [`EditError`] when nothing can hold the text, or the result would nest too deep.
    pub fn graft(&mut self, pointer: &str, part: &Document) -> Result<bool, EditError> {
        let grafted = self.grafted(pointer, part)?;
        let is_changed = grafted.is_some();
        if let Some(grafted) = grafted {
            *self = grafted;
        }
        Ok(is_changed)
    }

    /// The result of [`graft`](Document::graft); `None` if it equals this document.
    pub(crate) fn grafted(
        &self,
        pointer: &str,
        part: &Document,
    ) -> Result<Option<Document>, EditError> {
        let text = if let Some(index) = self.tree.find(pointer) {
            self.with_part(index, part)
        } else {
            // First adds a placeholder, laid out as a new member, and then replaces it by the part.
            let mut with_place = self.clone();
            with_place.set(pointer, &())?;
            // `-` finds no element in the result: it means the last element of the array.
            let index = with_place
                .tree
                .find(pointer)
                .or_else(|| with_place.last_beside(pointer));
            let Some(index) = index else {
                return Err(EditError(EditProblem::BadPointer {
                    pointer: pointer.to_owned(),
                }));
            };
            with_place.with_part(index, part)
        };
        if text == self.tree.text {
            return Ok(None);
        }
        let tree = Tree::from_text(text)
            .map_err(|corrupt| EditError::refused(&self.full(pointer), corrupt))?;
        let host = self.host.clone();
        Ok(Some(Document { tree, host }))
    }

    /// The indent of the line of the file on which the text begins.
    pub(super) fn first_indent(&self) -> &str {
        self.host.as_ref().map_or("", |host| &host.indent)
    }

    fn last_beside(&self, pointer: &str) -> Option<Index> {
        let (parent, _) = pointer::parent(pointer)?;
        let array = self.tree.find(parent)?;
        self.tree.children(array).last()
    }

    /// The text with the part in place of one value.
    fn with_part(&self, index: Index, part: &Document) -> String {
        let span = self.tree.span(index);
        let (start, end) = (span.start as usize, span.end as usize);
        let text = &self.tree.text;
        let style = self.style();
        let indent = line_indent(text, start, self.first_indent());
        let mut out = String::with_capacity(text.len() + part.text().len());
        out.push_str(&text[..start]);
        part.fit(&mut out, &style, indent);
        out.push_str(&text[end..]);
        out
    }

    /// Writes the root object so that it fits a line with this indent in a file of this style.
    fn fit(&self, out: &mut String, style: &Style, indent: &str) {
        let own = self.style();
        if own.multiline != style.multiline {
            lay(out, &self.tree, ROOT, style, None, indent);
            return;
        }
        let raw = self.tree.raw(ROOT);
        let same = self.first_indent() == indent && own.newline == style.newline;
        if !style.multiline || (same && own.unit == style.unit) {
            out.push_str(raw);
            return;
        }
        // Strings contain no line ends, so every line end is between values.
        let mut lines = raw.split('\n');
        out.push_str(lines.next().unwrap_or_default().trim_end_matches('\r'));
        for line in lines {
            out.push_str(style.newline);
            let line = line.trim_end_matches('\r');
            let content = line.trim_start_matches([' ', '\t']);
            if content.is_empty() {
                continue;
            }
            let white = &line[..line.len() - content.len()];
            let mut deeper = white.strip_prefix(self.first_indent()).unwrap_or(white);
            out.push_str(indent);
            while let Some(rest) = deeper.strip_prefix(own.unit.as_str()) {
                out.push_str(&style.unit);
                deeper = rest;
            }
            out.push_str(deeper);
            out.push_str(content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str =
        "{\r\n\t\"v\": 1,\r\n\t\"part\": {\r\n\t\t\"a\": 1,\r\n\t\t\"l\": [1]\r\n\t}\r\n}\r\n";

    #[test]
    fn a_part_is_the_exact_slice_and_goes_back_as_it_was() {
        let mut host = Document::from_text(HOST).unwrap();
        let part = host.extract("/part").unwrap();
        assert_eq!(part.text(), "{\r\n\t\t\"a\": 1,\r\n\t\t\"l\": [1]\r\n\t}");
        assert_eq!(part.at(), "/part");
        assert_eq!(part.get("/l/0").unwrap().pointer(), "/part/l/0");
        assert!(!host.graft("/part", &part).unwrap());
        assert_eq!(host.text(), HOST);
        assert!(host.extract("/v").is_none());
    }

    #[test]
    fn editing_a_part_is_editing_in_place() {
        let mut host = Document::from_text(HOST).unwrap();
        let mut part = host.extract("/part").unwrap();
        let mut in_place = host.clone();
        for (pointer, value) in [
            ("/new", serde_json::json!({"x": [1, {}]})),
            ("/l/-", serde_json::json!(2)),
        ] {
            part.set(pointer, &value).unwrap();
            in_place.set(&format!("/part{pointer}"), &value).unwrap();
        }
        assert!(host.graft("/part", &part).unwrap());
        assert_eq!(host.text(), in_place.text());
    }

    #[test]
    fn a_part_is_moved_to_fit() {
        let part = Document::from_text(HOST).unwrap().extract("/part").unwrap();
        let mut deeper = Document::from_text("{\n  \"x\": {\n    \"y\": null\n  }\n}\n").unwrap();
        assert!(deeper.graft("/x/y", &part).unwrap());
        let moved = "{\n      \"a\": 1,\n      \"l\": [1]\n    }";
        assert_eq!(
            deeper.text(),
            format!("{{\n  \"x\": {{\n    \"y\": {moved}\n  }}\n}}\n")
        );
        let mut flat = Document::from_text("{\"x\":1}").unwrap();
        assert!(flat.graft("/y", &part).unwrap());
        assert_eq!(flat.text(), "{\"x\":1,\"y\":{\"a\":1,\"l\":[1]}}");
        let fresh = Document::new(&serde_json::json!({"a": 1})).unwrap();
        let mut host = Document::from_text(HOST).unwrap();
        assert!(host.graft("/z", &fresh).unwrap());
        assert!(
            host.text()
                .ends_with("\t},\r\n\t\"z\": {\r\n\t\t\"a\": 1\r\n\t}\r\n}\r\n")
        );
    }

    #[test]
    fn a_part_of_a_part_has_the_whole_pointer() {
        let host = Document::from_text("{\"a\": {\"b\": {\"c\": 1, \"c\": 2}}}").unwrap();
        let part = host.extract("/a").unwrap().extract("/b").unwrap();
        assert_eq!(part.at(), "/a/b");
        assert_eq!(part.findings()[0].pointer, "/a/b/c");
    }
}
