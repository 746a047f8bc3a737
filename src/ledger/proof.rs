//! The result of a command about finished work, as the ledger records it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, Write};
use std::process::ExitStatus;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::redaction::without_secrets_from;
use crate::shown;
use crate::staleness::{Covered, CoveredChange};

/// How many bytes of a command's output are recorded.
const MOST_OUTPUT: usize = 8 * 1024;

/// How many bytes before them are read: a secret of at most this length that reaches into them is complete when it is
/// redacted. The longest keys in use have half of it.
const MARGIN: usize = 24 * 1024;

/// The result of the last run of a command for pieces of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProofRecord {
    /// The steps, criteria and gates whose newest proof this is.
    pub of: Vec<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The inputs that were named: files and folders; empty if it covers the files that the checkpoint names.
    pub inputs: Vec<String>,
    /// How it ended.
    pub end: ProofEnd,
    /// When it began. It covers the files as they were then.
    pub began: DateTime<Utc>,
    /// How long it ran.
    pub milliseconds: u64,
    /// The end of its output.
    pub output: OutputTail,
    /// When it was recorded.
    pub at: DateTime<Utc>,
    /// The owner that recorded it.
    pub by: String,
    /// The name of its line.
    #[serde(skip)]
    pub(super) name: String,
    #[serde(skip)]
    pub(super) covered: Arc<Covered>,
}

/// How the command of a proof ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ProofEnd {
    /// It exited with this code: 0 proves the work, any other does not.
    Exit(i32),
    /// It was ended by this signal, which proves nothing.
    Signal(i32),
}

/// The last 8 KiB that a command wrote to both of its outputs, as text without [secrets](crate::Redaction::secrets).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputTail {
    text: String,
    #[serde(default)]
    omitted: u64,
}

/// Takes the output of a command as it is written, and makes its [`OutputTail`] when the command has ended.
#[derive(Clone, Default)]
pub struct OutputBuffer {
    bytes: VecDeque<u8>,
    all: u64,
}

/// A proof whose command ended.
#[derive(Clone, Debug)]
pub(crate) struct EndedProof {
    shown: Shown,
    covered: Arc<Covered>,
}

/// A proof in a line of the ledger.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredProof {
    #[serde(flatten)]
    shown: Shown,
    /// The files that it covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    covered: Option<Covered>,
    /// The same as a difference, if that is shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    differs: Option<Differs>,
}

/// The covered files to which a later proof may refer, by the name of the proof's line.
pub(super) type KnownCovered = HashMap<String, Arc<Covered>>;

/// The files that a proof covers, as a difference from an earlier proof that is current when this one is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Differs {
    /// The name of the earlier proof's line.
    from: String,
    #[serde(flatten)]
    by: CoveredChange,
}

/// The result of a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    of: Vec<String>,
    command: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<String>,
    end: ProofEnd,
    began: DateTime<Utc>,
    milliseconds: u64,
    output: OutputTail,
}

impl ProofRecord {
    /// Whether the command proved the work.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.end == ProofEnd::Exit(0)
    }

    /// The files that it covered, in order.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.covered.paths()
    }

    /// The list of files that it covered.
    pub(crate) fn covered(&self) -> &Covered {
        &self.covered
    }

    /// Whether it covers nothing, so that it never becomes outdated.
    #[must_use]
    pub fn covers_nothing(&self) -> bool {
        self.covered.is_nothing()
    }

    /// Its command on one line, for a person.
    #[must_use]
    pub fn command_line(&self) -> String {
        shown::command_line(&self.command)
    }

    /// Whether the other has the same command and inputs: then one run counts for both.
    fn is_the_same_run(&self, other: &ProofRecord) -> bool {
        self.command == other.command && self.inputs == other.inputs
    }
}

impl EndedProof {
    pub(super) fn new(
        proof: &super::Proof,
        of: &[String],
        began: DateTime<Utc>,
        covered: Covered,
        (end, output, milliseconds): (ProofEnd, OutputTail, u64),
    ) -> EndedProof {
        EndedProof {
            shown: Shown {
                of: of.to_vec(),
                command: proof.command.clone(),
                inputs: proof.inputs.clone(),
                end,
                began,
                milliseconds,
                output,
            },
            covered: Arc::new(covered),
        }
    }

    /// Its record in the line of this name.
    pub(super) fn record(&self, at: DateTime<Utc>, by: &str, name: &str) -> ProofRecord {
        let (shown, covered) = (self.shown.clone(), Arc::clone(&self.covered));
        shown.record(at, by.to_owned(), name.to_owned(), covered)
    }

    /// Its form in a line after these proofs: a list of files that was written before is not repeated.
    pub(super) fn stored(&self, known: &[ProofRecord]) -> StoredProof {
        let named = known.iter().filter(|known| !known.name.is_empty());
        let changes = named.map(|known| (self.covered.changes_from(&known.covered), known));
        let least = changes.min_by_key(|(changes, _)| *changes);
        let shorter = least.filter(|(changes, _)| *changes < self.covered.len());
        StoredProof {
            shown: self.shown.clone(),
            covered: shorter.is_none().then(|| Covered::clone(&self.covered)),
            differs: shorter.map(|(_, from)| Differs {
                from: from.name.clone(),
                by: self.covered.change_from(&from.covered),
            }),
        }
    }
}

impl Shown {
    fn record(
        self,
        at: DateTime<Utc>,
        by: String,
        name: String,
        covered: Arc<Covered>,
    ) -> ProofRecord {
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
            name,
            covered,
        }
    }
}

impl StoredProof {
    /// Its record; `known` has the covered files of earlier proofs. `None` if it is a difference from a missing one.
    pub(super) fn record(
        self,
        known: &KnownCovered,
        at: DateTime<Utc>,
        by: String,
        name: String,
    ) -> Option<ProofRecord> {
        let covered = match (self.covered, self.differs) {
            (Some(covered), _) => Arc::new(covered),
            (None, differs) => {
                let Differs { from, by } = differs?;
                known.get(&from)?.changed_by(by)
            }
        };
        Some(self.shown.record(at, by, name, covered))
    }
}

/// Adds a proof. It replaces each earlier proof of its work, and counts for all work of proofs with the same command
/// and inputs. Returns the proofs that no longer count.
pub(super) fn add(proofs: &mut Vec<ProofRecord>, mut newest: ProofRecord) -> Vec<ProofRecord> {
    for known in proofs.iter_mut() {
        if known.is_the_same_run(&newest) {
            let also = std::mem::take(&mut known.of).into_iter();
            let also: Vec<String> = also.filter(|item| !newest.of.contains(item)).collect();
            newest.of.extend(also);
        } else {
            known.of.retain(|item| !newest.of.contains(item));
        }
    }
    let replaced = proofs.extract_if(.., |known| known.of.is_empty());
    let replaced = replaced.collect();
    proofs.push(newest);
    replaced
}

impl OutputTail {
    /// The text. No character is cut, and bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many bytes of the output were before the text.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.omitted
    }
}

impl OutputBuffer {
    /// The end of the output.
    #[must_use]
    pub fn finish(mut self) -> OutputTail {
        let bytes = self.bytes.make_contiguous();
        let cut = bytes.len().saturating_sub(MOST_OUTPUT);
        let (before, end) = match self.all > bytes.len() as u64 {
            true => bytes.split_at(cut.max(end_of_key(bytes))),
            false => bytes.split_at(cut),
        };
        // The rest of a character whose first byte is before the end.
        let is_rest = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let rest = match before.is_empty() {
            true => 0,
            false => end.iter().take(3).take_while(is_rest).count(),
        };
        let (before, end) = bytes.split_at(before.len() + rest);
        let mut text = String::from_utf8_lossy(before).into_owned();
        let from = text.len();
        text.push_str(&String::from_utf8_lossy(end));
        // The beginning is cut by its place in the output: a secret that began before all these bytes is not
        // recognized, and ends before the cut.
        OutputTail {
            text: without_secrets_from(&text, from),
            omitted: self.all - end.len() as u64,
        }
    }
}

/// Where a private key ends that began before these bytes, such as a PGP key with a picture; 0 if there is none.
fn end_of_key(bytes: &[u8]) -> usize {
    let find = |from: usize, what: &[u8]| {
        let found = bytes[from..].windows(what.len());
        let at = found.into_iter().position(|window| window == what)?;
        Some(from + at)
    };
    let Some(end) = find(0, b"-----END ") else {
        return 0;
    };
    let name = end + b"-----END ".len();
    let after = find(name, b"-----").map_or(bytes.len(), |at| at + 5);
    let is_private = find(name, b"PRIVATE KEY").is_some_and(|at| at < after);
    match is_private && find(0, b"-----BEGIN ").is_none_or(|begin| begin > end) {
        true => after,
        false => 0,
    }
}

impl Write for OutputBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.all += bytes.len() as u64;
        let most = MOST_OUTPUT + MARGIN;
        let kept = &bytes[bytes.len().saturating_sub(most)..];
        let over = (self.bytes.len() + kept.len()).saturating_sub(most);
        self.bytes.drain(..over);
        self.bytes.extend(kept);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for OutputBuffer {
    /// Without the bytes, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputBuffer")
            .field("all", &self.all)
            .finish_non_exhaustive()
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

    fn tail(output: &[u8], piece: usize) -> OutputTail {
        let mut buffer = OutputBuffer::default();
        for bytes in output.chunks(piece) {
            buffer.write_all(bytes).unwrap();
        }
        buffer.finish()
    }

    #[test]
    fn the_end_of_an_output_is_kept_and_no_letter_is_cut() {
        let outputs = [
            "short".into(),
            "é".repeat(MOST_OUTPUT),
            format!("x{}", "😀".repeat(MOST_OUTPUT)),
            "a".repeat(MOST_OUTPUT),
        ];
        for output in outputs {
            for piece in [1, 7, 20_000] {
                let tail = tail(output.as_bytes(), piece);
                let text = tail.text();
                assert!(output.ends_with(text) && text.len() <= MOST_OUTPUT);
                assert!(text.len() + 4 > output.len().min(MOST_OUTPUT));
                assert_eq!(tail.omitted() as usize + text.len(), output.len());
                let json = serde_json::to_string(&tail).unwrap();
                assert_eq!(serde_json::from_str::<OutputTail>(&json).unwrap(), tail);
            }
        }
    }

    #[test]
    fn what_is_omitted_is_counted_in_the_bytes_that_the_command_wrote() {
        let binary = tail(&[0xff; 20_000], 1000);
        assert_eq!(binary.text(), "\u{fffd}".repeat(MOST_OUTPUT));
        assert_eq!(binary.omitted() as usize + MOST_OUTPUT, 20_000);
        let secret = format!("password={}\n", "p1".repeat(MOST_OUTPUT / 4));
        let after = "x".repeat(MOST_OUTPUT - 5);
        let cut = tail(format!("{secret}{after}").as_bytes(), 1000);
        assert_eq!(cut.text(), format!("[redacted: password]\n{after}"));
        assert_eq!(
            cut.omitted() as usize + MOST_OUTPUT,
            secret.len() + after.len()
        );
    }

    #[test]
    fn no_rest_of_a_key_stays_whose_beginning_was_cut_off() {
        let line = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ+/\n";
        let kind = "RSA PRIVATE KEY-----\n";
        let key = format!("-----BEGIN {kind}{}-----END {kind}", line.repeat(50));
        let keys = (MOST_OUTPUT + MARGIN) / key.len() + 1;
        for after in (0..key.len()).step_by(61) {
            let output = key.repeat(keys) + &"x".repeat(after);
            let shown = tail(output.as_bytes(), output.len());
            let shown = shown.text().trim_end_matches('x');
            let marks = shown.replace("[redacted: private-key]", "");
            assert_eq!(marks.trim(), "", "with {after} bytes after the keys");
        }
        // One that is longer than all that is looked at.
        let long = line.repeat(2 * (MOST_OUTPUT + MARGIN) / line.len());
        for kind in ["PRIVATE KEY-----", "PGP PRIVATE KEY BLOCK-----"] {
            let output = format!("-----BEGIN {kind}\n{long}-----END {kind}\nwell");
            assert_eq!(tail(output.as_bytes(), 1000).text(), "\nwell");
        }
        let public = format!("-----BEGIN PUBLIC KEY-----\n{long}-----END PUBLIC KEY-----\n");
        assert_eq!(tail(public.as_bytes(), 1000).text().len(), MOST_OUTPUT);
    }
}
