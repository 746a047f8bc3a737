//! What a command showed of finished work, as the ledger has it.

use std::collections::VecDeque;
use std::fmt;
use std::process::ExitStatus;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::record::Line;
use super::{ATTEMPTS, Ledger};
use crate::checkpoint::Result;
use crate::shown;
use crate::staleness::Covered;

/// How many bytes of its output are kept of a command.
const MOST_OUTPUT: usize = 8 * 1024;

/// What a command showed of pieces of work, the last time that it was run for them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProofRecord {
    /// The steps, criteria and gates whose newest proof this is.
    pub of: Vec<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The files and folders that were named as what it covers; none where it covers the files that the checkpoint names.
    pub inputs: Vec<String>,
    /// How it ended.
    pub end: ProofEnd,
    /// When it was begun: it covers the files as they were then.
    pub began: DateTime<Utc>,
    /// How long it ran.
    pub milliseconds: u64,
    /// The end of what it wrote.
    pub output: OutputTail,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// Who recorded it.
    pub by: String,
    #[serde(skip)]
    pub(super) covered: Arc<Covered>,
}

/// How the command of a proof ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ProofEnd {
    /// By itself, with this exit code: 0 proves, any other does not.
    Exit(i32),
    /// By this signal, which proves nothing.
    Signal(i32),
}

/// The last 8 KiB of what a command wrote to both of its outputs, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputTail {
    bytes: VecDeque<u8>,
    all: u64,
}

/// An [`OutputTail`] as it is written.
#[derive(Serialize, Deserialize)]
struct TailText {
    text: String,
    /// How many bytes came before.
    #[serde(default)]
    omitted: u64,
}

/// What a line of the ledger has of a proof.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredProof {
    of: Vec<String>,
    command: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<String>,
    end: ProofEnd,
    began: DateTime<Utc>,
    milliseconds: u64,
    output: OutputTail,
    covered: Covered,
}

impl ProofRecord {
    /// Whether the command showed what it was to show.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.end == ProofEnd::Exit(0)
    }

    /// The files that it covered, in order.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.covered.paths()
    }

    /// Whether it covers nothing, so that no change shows that it is outdated.
    #[must_use]
    pub fn covers_nothing(&self) -> bool {
        self.covered.is_nothing()
    }

    /// Its command on one line, for a person.
    #[must_use]
    pub fn command_line(&self) -> String {
        let plain = |letter: char| letter.is_alphanumeric() || "/._-+@~%=:,".contains(letter);
        let words = self.command.iter().map(|word| {
            let is_plain = !word.is_empty() && word.chars().all(plain);
            match is_plain {
                true => word.clone(),
                false => shown::quoted(word),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Whether the other is of the same command over the same inputs: then one run counts for both.
    fn is_the_same_run(&self, other: &ProofRecord) -> bool {
        self.command == other.command && self.inputs == other.inputs
    }
}

impl StoredProof {
    pub(super) fn new(
        proof: &super::Proof,
        of: &[String],
        began: DateTime<Utc>,
        covered: Covered,
        (end, output, milliseconds): (ProofEnd, OutputTail, u64),
    ) -> StoredProof {
        StoredProof {
            of: of.to_vec(),
            command: proof.command.clone(),
            inputs: proof.inputs.clone(),
            end,
            began,
            milliseconds,
            output,
            covered,
        }
    }

    fn record(self, at: DateTime<Utc>, by: String) -> ProofRecord {
        ProofRecord {
            of: self.of,
            command: self.command,
            inputs: self.inputs,
            end: self.end,
            began: self.began,
            milliseconds: self.milliseconds,
            output: self.output,
            at,
            by,
            covered: Arc::new(self.covered),
        }
    }

    /// Adds it to what is known: it takes the place of each earlier proof of its work, and counts for all that the same
    /// command over the same inputs was to show.
    pub(super) fn add_to(self, proofs: &mut Vec<ProofRecord>, at: DateTime<Utc>, by: String) {
        let mut newest = self.record(at, by);
        for known in proofs.iter_mut() {
            if known.is_the_same_run(&newest) {
                let also = std::mem::take(&mut known.of).into_iter();
                let also: Vec<String> = also.filter(|item| !newest.of.contains(item)).collect();
                newest.of.extend(also);
            } else {
                known.of.retain(|item| !newest.of.contains(item));
            }
        }
        proofs.retain(|known| !known.of.is_empty());
        proofs.push(newest);
    }
}

impl Ledger {
    /// Records a proof whose command ended.
    pub(crate) fn record_proof(&self, proof: &StoredProof) -> Result<ProofRecord> {
        for _ in 0..ATTEMPTS {
            let (all, _, task) = self.texts()?;
            let at = self.now();
            let line = Line::proved(at, &self.by, proof.clone());
            if self.of(task).append(line, all, self.fence)? {
                return Ok(proof.clone().record(at, self.by.clone()));
            }
        }
        Err(self.changed_meanwhile())
    }
}

impl OutputTail {
    /// Adds what a command wrote next.
    pub fn add(&mut self, bytes: &[u8]) {
        self.all += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(MOST_OUTPUT)..];
        let over = (self.bytes.len() + kept.len()).saturating_sub(MOST_OUTPUT);
        self.bytes.drain(..over);
        self.bytes.extend(kept);
    }

    /// The text, no letter cut; what is no UTF-8 in it is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().skip(self.cut()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How many bytes of the output came before the text.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.all - (self.bytes.len() - self.cut()) as u64
    }

    /// How many bytes at the beginning are the rest of a letter whose beginning is not kept.
    fn cut(&self) -> usize {
        if self.all == self.bytes.len() as u64 {
            return 0;
        }
        let rest = self.bytes.iter().take(3);
        rest.take_while(|byte| *byte & 0b1100_0000 == 0b1000_0000)
            .count()
    }
}

impl Serialize for OutputTail {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = TailText {
            text: self.text(),
            omitted: self.omitted(),
        };
        text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OutputTail {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let TailText { text, omitted } = TailText::deserialize(deserializer)?;
        let bytes: VecDeque<u8> = text.into_bytes().into();
        Ok(OutputTail {
            all: omitted.saturating_add(bytes.len() as u64),
            bytes,
        })
    }
}

impl From<ExitStatus> for ProofEnd {
    fn from(status: ExitStatus) -> ProofEnd {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return ProofEnd::Signal(signal);
        }
        ProofEnd::Exit(status.code().unwrap_or(-1))
    }
}

impl fmt::Display for ProofEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProofEnd::Exit(code) => write!(f, "exit code {code}"),
            ProofEnd::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_output_is_kept_and_no_letter_is_cut() {
        let outputs = [
            "short".into(),
            "é".repeat(MOST_OUTPUT),
            format!("x{}", "😀".repeat(MOST_OUTPUT)),
            "a".repeat(MOST_OUTPUT),
        ];
        for output in outputs {
            for pieces in [1, 7, 20_000] {
                let mut tail = OutputTail::default();
                output.as_bytes().chunks(pieces).for_each(|it| tail.add(it));
                let text = tail.text();
                assert!(output.ends_with(&text) && text.len() <= MOST_OUTPUT);
                assert!(text.len() + 4 > output.len().min(MOST_OUTPUT));
                assert_eq!(tail.omitted() as usize, output.len() - text.len());
                let json = serde_json::to_string(&tail).unwrap();
                let read: OutputTail = serde_json::from_str(&json).unwrap();
                assert_eq!((read.text(), read.omitted()), (text, tail.omitted()));
            }
        }
        let mut binary = OutputTail::default();
        binary.add(&[0xff; 20_000]);
        assert!(binary.text().chars().all(|letter| letter == '\u{fffd}'));
        assert!(binary.omitted() >= 20_000 - MOST_OUTPUT as u64);
    }
}
