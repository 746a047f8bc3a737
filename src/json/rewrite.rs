//! Writes a changed value into the document that it was read from.

use crate::quoted;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::diff::{Diff, Identity};
use super::document::Document;
use super::edit_error::{EditError, EditProblem};
use super::pointer;
use super::reader::Reading;
use super::relay::Change;
use super::tree::{Index, Kind, ROOT, Tree};
use super::typed::{Typed, compact};
use super::violation::{Code, Violation};

/// Options for writing a value.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Rewrite {
    /// Which members identify elements of lists. Elements of other lists are matched when they are equal, or when they
    /// changed in place.
    pub identities: &'static [Identity],
    /// Whether values that could not be read may be replaced or removed.
    pub allow_loss: bool,
}

impl Rewrite {
    /// No identities; no value may be lost.
    #[must_use]
    pub const fn new() -> Rewrite {
        Rewrite {
            identities: &[],
            allow_loss: false,
        }
    }

    /// Sets the identities.
    #[must_use]
    pub const fn identities(mut self, identities: &'static [Identity]) -> Rewrite {
        self.identities = identities;
        self
    }

    /// Sets whether values that could not be read may be replaced or removed.
    #[must_use]
    pub const fn allow_loss(mut self, allow: bool) -> Rewrite {
        self.allow_loss = allow;
        self
    }
}

/// A document into which another value was written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rewritten<T> {
    /// The document to write.
    pub document: Document,
    /// Whether its text differs from the one before.
    pub changed: bool,
    /// Values that could not be read and were removed, as pointers from the root of the file before the change. Empty
    /// unless [`Rewrite::allow_loss`] is set.
    pub lost: Vec<String>,
    /// The new document, read back; its value equals the wanted one.
    pub reading: Reading<T>,
}

/// Why a value was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// Values that could not be read would be replaced or removed.
    #[error("values that could not be read would be lost: {}", pointers.join(", "))]
    Loss {
        /// The pointers of these values, from the root of the file.
        pointers: Vec<String>,
    },
    /// The new text would not read as the wanted value.
    #[error("at {pointer} the text would not read back as the wanted value: {message}", pointer = quoted(pointer))]
    ReadBack {
        /// The first pointer, from the root of the file, at which it would differ.
        pointer: String,
        /// How it would differ.
        message: String,
    },
    /// The reading belongs to another document.
    #[error("the value was read from another document")]
    OtherDocument,
    /// The text could not be edited.
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl Document {
    /// Writes `wanted` into this document, in place of the value that was read from it.
    ///
    /// Only the differences between the two are written; every other byte stays, whether or not the type knows it. The
    /// result is read back and equals the wanted value.
    ///
    /// ```
    /// use agent_checkpoint::json::{Document, Rewrite};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Clone, PartialEq, Serialize, Deserialize)]
    /// struct Step { name: String, done: bool }
    /// #[derive(Clone, PartialEq, Serialize, Deserialize)]
    /// struct Plan { steps: Vec<Step> }
    ///
    /// let text = r#"{"steps": [{"name": "build", "host": "ci-3", "done": false}], "by": "hand"}"#;
    /// let document = Document::from_text(text)?;
    /// let reading = document.read::<Plan>()?;
    /// let mut wanted = reading.value.clone();
    /// wanted.steps[0].done = true;
    /// let rewritten = document.rewrite(&reading, &wanted, &Rewrite::new())?;
    /// assert_eq!(rewritten.document.text(), text.replace("false", "true"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RewriteError`] when a value that could not be read would be lost and that is not allowed; when the result
    /// would not read back as wanted, or would have new violations (from a type that writes what it does not read); and
    /// when the value cannot be written as JSON.
    #[doc(hidden)]
    pub fn rewrite<T>(
        &self,
        reading: &Reading<T>,
        wanted: &T,
        options: &Rewrite,
    ) -> Result<Rewritten<T>, RewriteError>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        if !reading.is_of(self) {
            return Err(RewriteError::OtherDocument);
        }
        let old = Typed::of(&reading.value, self.at())?;
        let new = Typed::of(wanted, self.at())?;
        let (document, lost) = if old.tree.text == new.tree.text {
            (self.clone(), Vec::new())
        } else {
            let mut diff = Diff {
                text: &self.tree,
                old: &old.tree,
                new: &new,
                left_out: &reading.nodes,
                identities: options.identities,
                lost: Vec::new(),
            };
            let change = diff.run(ROOT, ROOT);
            let mut lost = diff.lost;
            lost.sort_unstable();
            lost.dedup();
            let lost = lost.into_iter().map(|index| self.pointer_to(index));
            (self.changed(change, &new)?, lost.collect())
        };
        if !lost.is_empty() && !options.allow_loss {
            return Err(RewriteError::Loss { pointers: lost });
        }
        let read_back = document.read_back(reading, wanted, &new.tree)?;
        Ok(Rewritten {
            changed: document != *self,
            document,
            lost,
            reading: read_back,
        })
    }

    /// Replaces the members of this document by those of `value`. Members that the value lacks are removed; members
    /// with equal values keep their text.
    ///
    /// # Errors
    ///
    /// [`EditError`] when the value cannot be written as JSON, is no object, or nests too deep.
    pub fn replace_with<T: Serialize + ?Sized>(&self, value: &T) -> Result<Document, EditError> {
        let mut document = self.clone();
        document.set("", value)?;
        Ok(document)
    }

    fn changed(&self, change: Option<Change>, new: &Typed) -> Result<Document, EditError> {
        match change {
            // The root must stay an object.
            Some(Change::Replace(_)) => Err(EditError(EditProblem::RootNotObject)),
            Some(change) => {
                let text = self.relaid(&new.tree, ROOT, &change, &[]);
                let tree = Tree::from_text(text);
                let tree = tree.map_err(|corrupt| EditError::refused(self.at(), corrupt))?;
                Ok(Document {
                    tree,
                    host: self.host.clone(),
                })
            }
            None => Ok(self.clone()),
        }
    }

    /// The change that turns one value into the new one, independent of its type.
    pub(super) fn change_to(&self, index: Index, new: &Typed) -> Result<Option<Change>, EditError> {
        // In the spelling of serde_json, so that equal elements of lists have equal texts.
        let old = Tree::of_any_value(compact(&self.tree, index))
            .map_err(|corrupt| EditError::refused(self.at(), corrupt))?;
        let mut diff = Diff {
            text: &self.tree,
            old: &old,
            new,
            left_out: &[],
            identities: &[],
            lost: Vec::new(),
        };
        Ok(diff.run(index, ROOT))
    }

    fn read_back<T>(
        &self,
        before: &Reading<T>,
        wanted: &T,
        wanted_tree: &Tree,
    ) -> Result<Reading<T>, RewriteError>
    where
        T: Serialize + DeserializeOwned + PartialEq,
    {
        let reading = self.read::<T>().map_err(|unreadable| {
            let last = unreadable.violations.into_iter().next_back();
            match last {
                Some(violation) => not_readable(violation),
                None => RewriteError::ReadBack {
                    pointer: self.at().to_owned(),
                    message: "it cannot be read".to_owned(),
                },
            }
        })?;
        if let Some(violation) = new_violation(&before.violations, &reading.violations) {
            return Err(not_readable(violation.clone()));
        }
        if reading.value != *wanted {
            let read = Typed::of(&reading.value, self.at())?;
            let typed_pointer = first_difference(&read.tree, wanted_tree);
            return Err(RewriteError::ReadBack {
                pointer: reading.locate(self, &typed_pointer),
                message: "the type does not read what it writes there".to_owned(),
            });
        }
        Ok(reading)
    }
}

fn not_readable(violation: Violation) -> RewriteError {
    RewriteError::ReadBack {
        pointer: violation.pointer,
        message: format!("{} ({})", violation.message, violation.code),
    }
}

/// A violation that was not there before. Pointers shift when list elements are added or removed, so there must be more
/// violations of its code than before.
fn new_violation<'v>(before: &[Violation], after: &'v [Violation]) -> Option<&'v Violation> {
    let count = |violations: &[Violation], code: &Code| {
        violations.iter().filter(|v| v.code == *code).count()
    };
    let grown =
        |violation: &&Violation| count(after, &violation.code) > count(before, &violation.code);
    let was_there = |violation: &Violation| {
        before
            .iter()
            .any(|v| v.pointer == violation.pointer && v.code == violation.code)
    };
    let unknown = after.iter().find(|v| !was_there(v) && grown(v));
    unknown.or_else(|| after.iter().find(grown))
}

/// The pointer of the first difference of two trees; the root if there is none.
fn first_difference(a: &Tree, b: &Tree) -> String {
    let mut at = String::new();
    let (mut in_a, mut in_b) = (ROOT, ROOT);
    loop {
        let next = match (a.kind(in_a), b.kind(in_b)) {
            (Kind::Object, Kind::Object) => b.children(in_b).find_map(|child| {
                let name = b.name(child).into_owned();
                match a.member(in_a, &name) {
                    Some(counterpart) if a.same(counterpart, b, child) => None,
                    counterpart => Some((name, counterpart, child)),
                }
            }),
            (Kind::Array, Kind::Array) => {
                let mut counterparts = a.children(in_a);
                b.children(in_b).enumerate().find_map(|(position, child)| {
                    match counterparts.next() {
                        Some(counterpart) if a.same(counterpart, b, child) => None,
                        counterpart => Some((position.to_string(), counterpart, child)),
                    }
                })
            }
            _ => None,
        };
        let Some((token, counterpart, child)) = next else {
            return at;
        };
        pointer::push(&mut at, &token);
        match counterpart {
            Some(counterpart) => (in_a, in_b) = (counterpart, child),
            None => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Plan {
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<String>,
        steps: Vec<Step>,
        tags: Vec<String>,
        by_name: BTreeMap<String, u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ratio: Option<f64>,
        #[serde(skip)]
        cache: u8,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Step {
        id: u32,
        #[serde(default)]
        done: bool,
    }

    const BY_ID: &[Identity] = &[Identity {
        list: "steps",
        by: &["id"],
    }];

    fn try_rewrite(
        text: &str,
        options: &Rewrite,
        edit: impl FnOnce(&mut Plan),
    ) -> Result<Rewritten<Plan>, RewriteError> {
        let document = Document::from_text(text).unwrap();
        let reading = document.read::<Plan>().unwrap();
        let mut wanted = reading.value.clone();
        edit(&mut wanted);
        document.rewrite(&reading, &wanted, options)
    }

    fn rewrite(text: &str, edit: impl FnOnce(&mut Plan)) -> String {
        let options = Rewrite::new().identities(BY_ID);
        let rewritten = try_rewrite(text, &options, edit).unwrap();
        assert_eq!(rewritten.changed, rewritten.document.text() != text);
        assert_eq!(rewritten.lost, [""; 0]);
        rewritten.document.into_text()
    }

    #[test]
    fn nothing_wanted_nothing_changed() {
        for text in [
            "{}",
            "{ \"steps\" : [ 5 ], \"tags\":null, \"name\" : 1, \"x\":1.0}\r\n",
        ] {
            assert_eq!(rewrite(text, |_| ()), text);
        }
    }

    #[test]
    fn only_what_differs_is_written() {
        let text = "{\"name\": \"\\u0061\", \"x\": 1e2, \"steps\": [{\"id\": 1, \"n\": [ ]}, 7, {\"id\": 2}]}";
        assert_eq!(
            rewrite(text, |plan| plan.name = "b".into()),
            text.replace("\\u0061", "b")
        );
        assert_eq!(
            rewrite(text, |plan| plan.steps[1].done = true),
            text.replace("{\"id\": 2}", "{\"id\": 2, \"done\": true}")
        );
    }

    #[test]
    fn null_is_filled_in_place_and_absence_is_removed() {
        let text = "{\"status\": null, \"tags\": null, \"x\": 1}";
        assert_eq!(
            rewrite(text, |p| p.status = Some("a".into())),
            text.replacen("null", "\"a\"", 1)
        );
        assert_eq!(
            rewrite("{\"status\": \"a\", \"x\": 1}", |p| p.status = None),
            "{\"x\": 1}"
        );
        assert_eq!(
            rewrite(
                "{\"status\":1,\"status\":\"a\",\"x\":1,\"status\":\"b\"}",
                |p| p.status = None
            ),
            "{\"x\":1}"
        );
        assert_eq!(
            rewrite("{\"status\":\"a\",\"x\":1,\"status\":\"b\"}", |p| p
                .status =
                Some("c".into())),
            "{\"status\":\"a\",\"x\":1,\"status\":\"c\"}"
        );
    }

    #[test]
    fn new_fields_stand_by_their_neighbours_and_new_entries_at_the_end() {
        let text = "{\n  \"x\": 0,\n  \"name\": \"a\",\n  \"steps\": [],\n  \"y\": 0\n}";
        assert_eq!(
            rewrite(text, |p| p.status = Some("s".into())),
            text.replace("\"a\",\n", "\"a\",\n  \"status\": \"s\",\n")
        );
        assert_eq!(
            rewrite("{\"x\": 0, \"status\": \"a\"}", |p| p.name = "n".into()),
            "{\"x\": 0, \"name\": \"n\", \"status\": \"a\"}"
        );
        let text = "{\"by_name\": {\"m\": 1, \"z\": 2}, \"x\": 0}";
        let entries = |plan: &mut Plan| {
            plan.by_name.insert("a".into(), 1);
            plan.by_name.insert("n".into(), 2);
            plan.by_name.remove("m");
        };
        assert_eq!(
            rewrite(text, entries),
            "{\"by_name\": {\"z\": 2, \"a\": 1, \"n\": 2}, \"x\": 0}"
        );
    }

    #[test]
    fn elements_keep_their_text_wherever_they_go() {
        let text = "{\"steps\": [{\"id\":1,\"a\":\"x\"}, {\"id\": 2, \"b\": 0.10}, {\"id\":3}]}";
        assert_eq!(
            rewrite(text, |p| {
                p.steps.swap(0, 1);
                p.steps[1].done = true;
            }),
            "{\"steps\": [{\"id\": 2, \"b\": 0.10}, {\"id\":1,\"done\":true,\"a\":\"x\"}, {\"id\":3}]}"
        );
        assert_eq!(
            rewrite(text, |p| {
                p.steps.remove(0);
                p.steps.insert(1, Step { id: 9, done: false });
                p.steps[0].done = true;
            }),
            "{\"steps\": [{\"id\": 2, \"done\": true, \"b\": 0.10}, {\"id\":9, \"done\":false}, {\"id\":3}]}"
        );
        // An element with another identity is another element, so nothing of the old one is kept.
        assert_eq!(
            rewrite("{\"steps\": [{\"id\":1,\"a\":\"x\"}]}", |p| p.steps[0].id =
                2),
            "{\"steps\": [{\"id\":2,\"done\":false}]}"
        );
    }

    #[test]
    fn without_identity_elements_change_in_place() {
        let text = "{\"steps\": [{\"id\": 1, \"a\": 1}, {\"id\": 2, \"a\": 2}], \"tags\": [\"a\",  \"b\"]}";
        let rewritten = try_rewrite(text, &Rewrite::new(), |plan| {
            plan.steps[0].id = 7;
            plan.steps[1].done = true;
            plan.tags[1] = "c".into();
        });
        assert_eq!(
            rewritten.unwrap().document.text(),
            "{\"steps\": [{\"id\": 7, \"a\": 1}, {\"id\": 2, \"done\": true, \"a\": 2}], \"tags\": [\"a\",  \"c\"]}"
        );
    }

    #[test]
    fn unreadable_values_stay_where_they_are() {
        let text = "{\"tags\": [1, \"a\", 2, \"b\", 3], \"by_name\": {\"x\": \"?\", \"y\": 1}}";
        assert_eq!(
            rewrite(text, |plan| {
                plan.tags = vec!["b".into(), "c".into()];
                plan.by_name.clear();
            }),
            "{\"tags\": [1, 2, \"b\", 3, \"c\"], \"by_name\": {\"x\": \"?\"}}"
        );
    }

    #[test]
    fn what_could_not_be_read_is_not_lost_silently() {
        type Edit = fn(&mut Plan);
        let lossy: [(&str, Edit, &str, &str); 3] = [
            (
                "{\"name\": 5}",
                |p| p.name = "a".into(),
                "/name",
                "{\"name\": \"a\"}",
            ),
            (
                "{\"steps\": {\"id\": 1}}",
                |p| p.steps.push(Step::default()),
                "/steps",
                "{\"steps\": [{\"id\": 0, \"done\": false}]}",
            ),
            (
                "{\"steps\": [{\"id\": 1, \"done\": 0}]}",
                |p| p.steps.clear(),
                "/steps/0/done",
                "{\"steps\": []}",
            ),
        ];
        for (text, edit, pointer, after) in lossy {
            let refused = try_rewrite(text, &Rewrite::new(), edit).unwrap_err();
            assert!(
                matches!(&refused, RewriteError::Loss { pointers } if pointers == &[pointer]),
                "{refused}"
            );
            let allowed = try_rewrite(text, &Rewrite::new().allow_loss(true), edit).unwrap();
            assert_eq!(allowed.document.text(), after);
            assert_eq!(allowed.lost, [pointer]);
            assert_eq!(allowed.reading.violations, []);
        }
    }

    #[test]
    fn what_would_not_read_back_is_refused() {
        let refused = |edit: fn(&mut Plan)| try_rewrite("{}", &Rewrite::new(), edit).unwrap_err();
        assert!(matches!(
            refused(|p| p.ratio = Some(f64::NAN)),
            RewriteError::Edit(EditError(EditProblem::NotFinite { .. }))
        ));
        assert!(matches!(
            refused(|p| p.cache = 1),
            RewriteError::ReadBack { .. }
        ));

        #[derive(Clone, PartialEq, Serialize, Deserialize)]
        struct Aliased {
            #[serde(alias = "title")]
            name: String,
        }
        let document = Document::from_text("{\"title\": \"a\"}").unwrap();
        let reading = document.read::<Aliased>().unwrap();
        let wanted = Aliased { name: "b".into() };
        let error = document
            .rewrite(&reading, &wanted, &Rewrite::new())
            .err()
            .unwrap();
        assert!(matches!(error, RewriteError::ReadBack { .. }), "{error}");

        // A reading whose value was changed no longer describes the document.
        let mut reading = document.read::<Aliased>().unwrap();
        reading.value.name = "c".into();
        let wanted = reading.value.clone();
        assert!(
            document
                .rewrite(&reading, &wanted, &Rewrite::new())
                .is_err()
        );
        let other = Document::from_text("{}").unwrap();
        let error = other
            .rewrite(&reading, &wanted, &Rewrite::new())
            .err()
            .unwrap();
        assert!(matches!(error, RewriteError::OtherDocument));
    }

    #[test]
    fn the_place_that_would_differ_is_named() {
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        struct Upper {
            list: Vec<String>,
        }
        impl Serialize for Upper {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let list: Vec<_> = self.list.iter().map(|text| text.to_uppercase()).collect();
                let mut upper = serializer.serialize_struct("Upper", 1)?;
                upper.serialize_field("list", &list)?;
                upper.end()
            }
        }
        let host = Document::from_text("{\"at\": {\"list\": [1, \"A\"]}}").unwrap();
        let document = host.extract("/at").unwrap();
        let reading = document.read::<Upper>().unwrap();
        let wanted = Upper {
            list: vec!["A".into(), "b".into()],
        };
        let error = document
            .rewrite(&reading, &wanted, &Rewrite::new())
            .err()
            .unwrap();
        assert!(matches!(&error, RewriteError::ReadBack { .. }), "{error}");
    }

    #[test]
    fn a_type_that_writes_what_it_cannot_read_is_refused() {
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        struct Counts {
            list: Vec<u8>,
        }
        impl Serialize for Counts {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let total = serde_json::json!(format!("{} in all", self.list.len()));
                let list = self.list.iter().map(|&count| count.into());
                let list: Vec<serde_json::Value> = list.chain([total]).collect();
                BTreeMap::from([("list", list)]).serialize(serializer)
            }
        }
        // The total would be skipped again, so the values are equal, but the file would have a new violation.
        let document = Document::from_text("{\"list\": [1]}").unwrap();
        let reading = document.read::<Counts>().unwrap();
        let wanted = Counts { list: vec![2] };
        let error = document
            .rewrite(&reading, &wanted, &Rewrite::new())
            .err()
            .unwrap();
        assert!(
            matches!(&error, RewriteError::ReadBack { pointer, .. } if pointer == "/list/1"),
            "{error}"
        );
    }

    #[test]
    fn a_part_is_rewritten_in_the_layout_of_its_file() {
        let text = "{\r\n\t\"a\": 1,\r\n\t\"plan\": {\r\n\t\t\"steps\": []\r\n\t}\r\n}\r\n";
        let mut host = Document::from_text(text).unwrap();
        let part = host.extract("/plan").unwrap();
        let reading = part.read::<Plan>().unwrap();
        let mut wanted = reading.value.clone();
        wanted.steps.push(Step { id: 1, done: true });
        let rewritten = part.rewrite(&reading, &wanted, &Rewrite::new()).unwrap();
        host.graft("/plan", &rewritten.document).unwrap();
        let step =
            "[\r\n\t\t\t{\r\n\t\t\t\t\"id\": 1,\r\n\t\t\t\t\"done\": true\r\n\t\t\t}\r\n\t\t]";
        assert_eq!(host.text(), text.replace("[]", step));
        assert_eq!(rewritten.document.at(), "/plan");
    }

    #[test]
    fn replacing_drops_foreign_members_and_keeps_the_rest() {
        let text = "{\n\t\"foreign\": 1,\n\t\"name\": \"\\u0061\",\n\t\"tags\": [\"a\", 1.0]\n}\n";
        let document = Document::from_text(text).unwrap();
        let replaced = document
            .replace_with(&serde_json::json!({"name": "a", "tags": ["a", 2]}))
            .unwrap();
        assert_eq!(
            replaced.text(),
            "{\n\t\"name\": \"\\u0061\",\n\t\"tags\": [\"a\", 2]\n}\n"
        );
    }
}
