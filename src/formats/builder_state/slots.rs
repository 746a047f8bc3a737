//! The slots of a host file, which can hold a checkpoint.

use std::fmt;
use std::str::FromStr;

use crate::checkpoint::{Error, ErrorKind, Key, Result};
use crate::is_blank;
use crate::json::{Document, Kind, Node, quoted_short};

/// The code of the error that a host file has no such slot.
pub(crate) const NO_SUCH_SLOT: &str = "no-such-slot";

/// The name of a slot: which checkpoint of a host file is meant.
///
/// As a key of a store it reads `active`, `adhoc:ID`, `top` or, rarely, `active-prd`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Slot {
    /// The active task: `activeWork`, else `activePrd`.
    Active,
    /// A checkpoint left in `activePrd` beside the checkpoint of `activeWork`.
    FormerActive,
    /// The task of `adhocQueue` with this id.
    Adhoc(String),
    /// The top level of the file.
    Top,
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::Active => f.write_str("active"),
            Slot::FormerActive => f.write_str("active-prd"),
            Slot::Adhoc(id) => write!(f, "adhoc:{id}"),
            Slot::Top => f.write_str("top"),
        }
    }
}

impl FromStr for Slot {
    type Err = Error;

    fn from_str(text: &str) -> Result<Slot> {
        match text.split_once(':') {
            None if text == "active" => Ok(Slot::Active),
            None if text == "active-prd" => Ok(Slot::FormerActive),
            None if text == "top" => Ok(Slot::Top),
            Some(("adhoc", id)) if !id.is_empty() => Ok(Slot::Adhoc(id.to_owned())),
            _ => Err(Error::new(ErrorKind::InvalidKey {
                text: text.to_owned(),
                reason: "a slot is `active`, `adhoc:ID`, `top` or `active-prd`",
            })),
        }
    }
}

/// One slot of a host file and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotPlace {
    /// The name of the slot.
    pub slot: Slot,
    /// The JSON pointer of its checkpoint, even if it holds none.
    pub pointer: String,
    /// Whether the slot holds a checkpoint. `null` is none.
    pub occupied: bool,
    /// The task of the checkpoint: the current story, or the id of the work or ad-hoc task.
    pub task: Option<String>,
    /// The description of the task, from the host's fields.
    pub description: Option<String>,
}

impl SlotPlace {
    fn new(slot: Slot, base: &str, host: Node<'_>) -> Self {
        SlotPlace {
            slot,
            pointer: format!("{base}/checkpoint"),
            occupied: host
                .get("checkpoint")
                .is_some_and(|node| node.kind() != Kind::Null),
            task: None,
            description: None,
        }
    }

    /// The slot as a key of a store.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`] when the id of an ad-hoc task cannot be a key.
    pub fn key(&self) -> Result<Key> {
        Key::new(self.slot.to_string())
    }
}

fn text(node: Node<'_>, member: &str) -> Option<String> {
    let text = node.get(member)?.as_str()?.into_owned();
    (!is_blank(&text)).then_some(text)
}

/// The first of these members that is not blank. Hosts use different names for these fields.
fn first_text(node: Node<'_>, members: &[&str]) -> Option<String> {
    members.iter().find_map(|member| text(node, member))
}

/// The id of an object. Some hosts write it as a number.
fn id(node: Node<'_>) -> Option<String> {
    match node.get("id")? {
        number if number.kind() == Kind::Number => Some(number.raw().to_owned()),
        _ => text(node, "id"),
    }
}

/// The id of a requirements document.
fn prd_id(prd: Node<'_>) -> Option<String> {
    id(prd).or_else(|| text(prd, "prdId"))
}

const DESCRIPTION: &[&str] = &["description", "title", "name"];

/// The id and description of the task in `currentTask`, which may be a text or an object.
fn current_task(root: Node<'_>) -> (Option<String>, Option<String>) {
    let Some(task) = object(root, "currentTask") else {
        return (None, text(root, "currentTask"));
    };
    let id = id(task).or_else(|| text(task, "taskId"));
    (id, first_text(task, DESCRIPTION))
}

fn object<'d>(node: Node<'d>, member: &str) -> Option<Node<'d>> {
    node.get(member).filter(|node| node.kind() == Kind::Object)
}

impl Slot {
    /// Lists all slots of a host file, in the order active, ad hoc, top.
    ///
    /// The active task is `activeWork` if that is present, unless `activePrd` has a checkpoint and `activeWork` never
    /// had one. If both have one, `activePrd` becomes a slot of its own. The top level is a slot only if it holds a
    /// checkpoint, or if there is no other slot.
    #[must_use]
    pub fn places(host: &Document) -> Vec<SlotPlace> {
        let root = host.root();
        let work = object(root, "activeWork").map(|work| {
            let mut place = SlotPlace::new(Slot::Active, "/activeWork", work);
            place.task = text(work, "currentStory").or_else(|| id(work));
            place.description = first_text(work, DESCRIPTION);
            place
        });
        let (task_at_hand, description_at_hand) = current_task(root);
        let prd = object(root, "activePrd").map(|prd| {
            let mut place = SlotPlace::new(Slot::Active, "/activePrd", prd);
            place.task = text(prd, "currentStory").or_else(|| prd_id(prd));
            let own = text(prd, "description").or_else(|| description_at_hand.clone());
            place.description = own.or_else(|| describe_prd(prd));
            place
        });
        let mut places: Vec<SlotPlace> = Vec::new();
        let work_has_place = root
            .get("activeWork")
            .is_some_and(|work| work.get("checkpoint").is_some());
        match (work, prd) {
            (Some(_), Some(prd)) if prd.occupied && !work_has_place => places.push(prd),
            (Some(work), Some(mut prd)) => {
                places.push(work);
                if prd.occupied {
                    prd.slot = Slot::FormerActive;
                    places.push(prd);
                }
            }
            (work, prd) => places.extend(work.or(prd)),
        }
        if let Some(queue) = root.get("adhocQueue") {
            for (index, task) in queue.elements().enumerate() {
                if let Some(id) = id(task) {
                    let base = format!("/adhocQueue/{index}");
                    let mut place = SlotPlace::new(Slot::Adhoc(id.clone()), &base, task);
                    place.task = Some(id);
                    place.description = first_text(task, DESCRIPTION);
                    places.push(place);
                }
            }
        }
        let mut top = SlotPlace::new(Slot::Top, "", root);
        if top.occupied || places.is_empty() {
            // Uses the names of the active task, if the host has one.
            let active = places.iter().find(|place| place.slot == Slot::Active);
            let task = active.and_then(|place| place.task.clone());
            let task = task.or(task_at_hand);
            top.task = task.or_else(|| text(root, "sessionId"));
            let description = active.and_then(|place| place.description.clone());
            top.description = description.or(description_at_hand);
            places.push(top);
        }
        places
    }

    /// Finds this slot in a host file.
    ///
    /// # Errors
    ///
    /// The code `no-such-slot` when the host file has no such slot, [`ErrorKind::Ambiguous`] when two ad-hoc tasks have
    /// the id.
    pub fn find(&self, host: &Document) -> Result<SlotPlace> {
        let places = Slot::places(host);
        let mut fitting = places.iter().filter(|place| place.slot == *self);
        match (fitting.next(), fitting.next()) {
            (Some(place), None) => Ok(place.clone()),
            (Some(first), Some(second)) => Err(Error::new(ErrorKind::Ambiguous {
                what: "task with this id",
                candidates: vec![first.pointer.clone(), second.pointer.clone()],
            })),
            (None, _) if *self == Slot::Top => Ok(SlotPlace::new(Slot::Top, "", host.root())),
            (None, _) => {
                let there: Vec<String> =
                    places.iter().map(|place| place.slot.to_string()).collect();
                let there = match there.as_slice() {
                    [] => String::new(),
                    there => format!("; it has {}", there.join(", ")),
                };
                let slot = quoted_short(&self.to_string());
                Err(Error::other(
                    NO_SUCH_SLOT,
                    format!("this host file has no slot {slot}{there}"),
                ))
            }
        }
    }

    /// The slot to use when no slot is named: the only one with a checkpoint, else the active task, else the only one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Ambiguous`] when several fit.
    pub fn only(host: &Document) -> Result<Slot> {
        let places = Slot::places(host);
        let occupied: Vec<_> = places.iter().filter(|place| place.occupied).collect();
        let candidates = match occupied.as_slice() {
            [only] => return Ok(only.slot.clone()),
            [] => match places.as_slice() {
                [only] => return Ok(only.slot.clone()),
                [first, ..] if first.slot == Slot::Active => return Ok(Slot::Active),
                all => all.iter().map(|place| place.slot.to_string()).collect(),
            },
            several => several.iter().map(|place| place.slot.to_string()).collect(),
        };
        Err(Error::new(ErrorKind::Ambiguous {
            what: "checkpoint in this host file",
            candidates,
        }))
    }
}

/// Describes the current document from the fields of the host.
fn describe_prd(prd: Node<'_>) -> Option<String> {
    let file = text(prd, "file");
    let title = first_text(prd, &["title", "name"]);
    let prd_name = match (prd_id(prd), title) {
        (Some(id), Some(title)) => Some(format!("{id} ({title})")),
        (id, title) => id.or(title).or_else(|| file.clone()),
    };
    let mut description = match (text(prd, "currentStory"), prd_name) {
        (Some(story), Some(prd)) => format!("Story {story} of {prd}"),
        (Some(story), None) => format!("Story {story}"),
        (None, Some(prd)) => prd,
        (None, None) => return None,
    };
    if let Some(file) = file {
        description.push_str(&format!(", described in {file}"));
    }
    if let Some(branch) = text(prd, "branch") {
        description.push_str(&format!(" (branch {branch})"));
    }
    Some(description)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(host: &str) -> Vec<String> {
        let host = Document::from_text(host).unwrap();
        Slot::places(&host)
            .iter()
            .map(|place| format!("{} {} {}", place.slot, place.pointer, place.occupied))
            .collect()
    }

    #[test]
    fn every_known_place_is_found() {
        assert_eq!(
            slots(
                r#"{"activePrd":{"checkpoint":null},"adhocQueue":[{"id":"a"},{"id":"b","checkpoint":{}}],"checkpoint":{}}"#
            ),
            [
                "active /activePrd/checkpoint false",
                "adhoc:a /adhocQueue/0/checkpoint false",
                "adhoc:b /adhocQueue/1/checkpoint true",
                "top /checkpoint true",
            ]
        );
        assert_eq!(slots("{}"), ["top /checkpoint false"]);
    }

    #[test]
    fn the_later_name_of_the_active_task_wins_unless_only_the_former_has_a_checkpoint() {
        let both = r#"{"activePrd":{"checkpoint":{}},"activeWork":{"checkpoint":{}}}"#;
        assert_eq!(
            slots(both),
            [
                "active /activeWork/checkpoint true",
                "active-prd /activePrd/checkpoint true"
            ]
        );
        // Deleting one checkpoint does not bring the other into its slot.
        let deleted = r#"{"activePrd":{"checkpoint":{}},"activeWork":{"checkpoint":null}}"#;
        assert_eq!(slots(deleted)[0], "active /activeWork/checkpoint false");
        let former = r#"{"activePrd":{"checkpoint":{}},"activeWork":{}}"#;
        assert_eq!(slots(former), ["active /activePrd/checkpoint true"]);
    }

    #[test]
    fn the_only_checkpoint_needs_no_name() {
        let only = |text: &str| Slot::only(&Document::from_text(text).unwrap());
        let one = r#"{"activePrd":{},"adhocQueue":[{"id":"b","checkpoint":{}}]}"#;
        assert_eq!(only(one).unwrap(), Slot::Adhoc("b".into()));
        let none = r#"{"activePrd":{},"adhocQueue":[{"id":"b"}]}"#;
        assert_eq!(only(none).unwrap(), Slot::Active);
        let two = r#"{"checkpoint":{},"adhocQueue":[{"id":"b","checkpoint":{}}]}"#;
        assert!(only(two).is_err());
        assert!(only(r#"{"adhocQueue":[{"id":"a"},{"id":"b"}]}"#).is_err());
    }

    #[test]
    fn a_task_is_described_by_whatever_the_host_has_on_it() {
        let described = |host: &str| {
            let host = Document::from_text(host).unwrap();
            let place = Slot::places(&host).remove(0);
            (place.task.unwrap(), place.description.unwrap())
        };
        for (host, task, description) in [
            (
                r#"{"activePrd":{"id":"p","file":"p.md","branch":"main","currentStory":"US-3"}}"#,
                "US-3",
                "Story US-3 of p, described in p.md (branch main)",
            ),
            (
                r#"{"activePrd":{"prdId":"p","name":"Dark mode","currentStory":"US-3"}}"#,
                "US-3",
                "Story US-3 of p (Dark mode)",
            ),
            (
                r#"{"activePrd":{"prdId":"p","title":"Dark mode"}}"#,
                "p",
                "p (Dark mode)",
            ),
            (
                r#"{"activePrd":{"id":"p"},"currentTask":{"description":"Wire the toggle"}}"#,
                "p",
                "Wire the toggle",
            ),
            (
                r#"{"activePrd":{"id":"p","description":"Own"},"currentTask":"Wire the toggle"}"#,
                "p",
                "Own",
            ),
            (r#"{"activeWork":{"id":4,"name":"Footer"}}"#, "4", "Footer"),
            // The next story is another task, although the work is the same.
            (
                r#"{"activeWork":{"id":4,"currentStory":"US-3","name":"Footer"}}"#,
                "US-3",
                "Footer",
            ),
            (
                r#"{"adhocQueue":[{"id":"a","title":"Fix it"}]}"#,
                "a",
                "Fix it",
            ),
            (
                r#"{"checkpoint":{},"currentTask":{"taskId":"T","title":"Fix it"}}"#,
                "T",
                "Fix it",
            ),
        ] {
            assert_eq!(
                described(host),
                (task.to_owned(), description.to_owned()),
                "{host}"
            );
        }
    }

    #[test]
    fn two_tasks_with_one_id_are_not_guessed_between() {
        let host = Document::from_text(r#"{"adhocQueue":[{"id":"a"},{"id":"a"}]}"#).unwrap();
        let error = Slot::Adhoc("a".into()).find(&host).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Ambiguous { .. }));
    }
}
