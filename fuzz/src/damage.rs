//! Bytes as choices.
//!
//! Random bytes are next to never JSON, and a fuzzer that follows the coverage needs hours to get there. So the targets take
//! their bytes twice: as a file, and as a list of choices of what to do to a seed.

use agent_checkpoint::json::{Document, Node};

use crate::seeds::seeds;

/// The bytes that choices are made by; when they have run out, every choice is the first.
pub(crate) struct Choices<'b>(&'b [u8]);

impl<'b> Choices<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Choices<'b> {
        Choices(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number below `count`; 0 when there is nothing to choose from.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let width = self.0.len().min(2);
        let (taken, rest) = self.0.split_at(width);
        self.0 = rest;
        let number = taken
            .iter()
            .fold(0, |number, byte| number * 256 + usize::from(*byte));
        number % count.max(1)
    }

    /// One of the seeds.
    pub(crate) fn seed(&mut self) -> &'static [u8] {
        let seeds = seeds();
        &seeds[self.below(seeds.len())].1
    }

    /// One of the values of a document.
    pub(crate) fn node<'d>(&mut self, document: &'d Document) -> Node<'d> {
        let mut nodes = vec![document.root()];
        let mut at = 0;
        while let Some(node) = nodes.get(at).copied() {
            nodes.extend(node.members().map(|(_, member)| member));
            nodes.extend(node.elements());
            at += 1;
        }
        nodes[self.below(nodes.len())]
    }
}

/// What JSON is made of, and what damages it.
const PIECES: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\0",
    b"\n",
    b" ",
    b"0",
    b"1",
    b"-",
    b".",
    b"e5",
    b"1e999",
    b"null",
    b"true",
    b"\"status\":",
    b"\"N/A\"",
    b"[[[[",
    b"\\ud800",
    b"\\u0000",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xc3\xa9",
    b"\"2026-03-02T08:00:00Z\"",
    b"\"id\": \"../x\"",
    b"[]",
    b"{}",
];

/// A seed that was cut, filled, overwritten and spliced, as the bytes have it.
pub(crate) fn damaged(bytes: &[u8]) -> Vec<u8> {
    let mut choices = Choices::new(bytes);
    let mut damaged = choices.seed().to_vec();
    for _ in 0..8 {
        if choices.is_empty() {
            break;
        }
        let at = choices.below(damaged.len() + 1);
        let end = (at + choices.below(40)).min(damaged.len());
        let piece = PIECES[choices.below(PIECES.len())];
        match choices.below(6) {
            0 => drop(damaged.splice(at..end, piece.iter().copied())),
            1 => drop(damaged.splice(at..at, piece.iter().copied())),
            2 => drop(damaged.drain(at..end)),
            3 => damaged.truncate(at),
            4 => damaged[at..].fill(0),
            _ => {
                let other = choices.seed();
                damaged.truncate(at);
                damaged.extend_from_slice(&other[at.min(other.len())..]);
            }
        }
    }
    damaged
}

/// A seed in which values are others, as the bytes have it: still a document. None if the seed is none.
pub(crate) fn deviating(bytes: &[u8]) -> Option<Document> {
    let mut choices = Choices::new(bytes);
    let mut document = Document::parse(choices.seed()).ok()?;
    for _ in 0..8 {
        if choices.is_empty() {
            break;
        }
        let at = choices.node(&document).pointer();
        let Ok(other) = Document::parse(choices.seed()) else {
            continue;
        };
        let value = value_of(choices.node(&other));
        // An edit that has no place is refused, which is as well.
        let _refused = match choices.below(3) {
            0 => document.set(&at, &value),
            1 => document.insert(&at, &value),
            _ => document.remove(&at),
        };
    }
    Some(document)
}

/// A value to put somewhere else.
pub(crate) fn value_of(node: Node<'_>) -> serde_json::Value {
    serde_json::from_str(node.raw()).unwrap_or_default()
}
