//! The gates of a build: those of the plan, and gates A and B of the later revision.

use super::BuildCheckpoint;
use crate::checkpoint::{Error, Result};
use crate::quoted;

#[cfg(feature = "schema")]
pub(super) const FIDELITY_PATTERN: &str = "^(pass|fail:[0-9]+)$";
#[cfg(feature = "schema")]
pub(super) const PRESENCE_PATTERN: &str = "^(pass|not_applicable|(fail|blocked|waived):[\\s\\S]+)$";

/// The name of a gate without the workstream that it was passed for: `type-check` for `type-check (WS2)` and
/// `type-check:WS2`.
pub(super) fn gate_name(gate: &str) -> &str {
    split(gate).0
}

/// The workstream that a gate was passed for: `WS2` for `type-check (WS2)` and `type-check:WS2`.
pub(super) fn gate_workstream(gate: &str) -> Option<&str> {
    split(gate).1
}

fn split(gate: &str) -> (&str, Option<&str>) {
    let gate = gate.trim();
    let in_brackets = gate.strip_suffix(')').and_then(|text| text.split_once('('));
    // A gate may have a colon in its name, such as `test:unit`.
    let after_colon = || {
        gate.rsplit_once(':')
            .filter(|(_, id)| is_workstream(id.trim()))
    };
    match in_brackets.or_else(after_colon) {
        Some((name, id)) if !name.trim_end().is_empty() => (name.trim_end(), Some(id.trim())),
        _ => (gate, None),
    }
}

/// `WS2`, `WS2a`, `WS-ui`.
pub(super) fn is_workstream(id: &str) -> bool {
    let rest = id.strip_prefix("WS").or_else(|| id.strip_prefix("ws"));
    rest.is_some_and(|rest| {
        rest.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '_'))
            && !rest.contains(char::is_whitespace)
    })
}

/// Whether two spellings mean one gate: the names are equal, and the workstreams are equal or one is not given.
pub(super) fn same_gate(a: &str, b: &str) -> bool {
    let ((a, of), (b, other)) = (split(a), split(b));
    a == b && (of.is_none() || other.is_none() || of == other)
}

/// Whether a text is a result of gate A: `pass`, or `fail:` and a number.
pub(super) fn is_fidelity(text: &str) -> bool {
    let faults = text.strip_prefix("fail:");
    let is_number =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    text == "pass" || faults.is_some_and(is_number)
}

/// Whether a text is a result of gate B.
pub(super) fn is_presence(text: &str) -> bool {
    match text.split_once(':') {
        None => ["pass", "not_applicable"].contains(&text),
        Some((what, why)) => ["fail", "blocked", "waived"].contains(&what) && !why.is_empty(),
    }
}

/// The result of a gate that keeps a build from being complete.
pub(super) struct Obstacle {
    pub(super) pointer: &'static str,
    pub(super) message: String,
}

impl BuildCheckpoint {
    /// Whether gate B could not be checked because the stack was down. Such a block cannot be waived.
    pub(super) fn is_stack_down(&self) -> bool {
        let text = self.gate_b_presence.as_deref().unwrap_or_default();
        let why = text.split_once(':').filter(|(what, _)| *what == "blocked");
        why.is_some_and(|(_, why)| why.trim() == "stack_down")
    }

    /// The issue that waives gate B.
    pub(super) fn waiver_issue(&self) -> Option<&str> {
        let issue = self.render_proof_waiver.as_ref()?.issue_id.as_deref()?;
        Some(issue.trim()).filter(|issue| !issue.is_empty())
    }

    /// Why gate A keeps the build from being complete, if it does.
    pub(super) fn fidelity_obstacle(&self) -> Option<Obstacle> {
        let text = self.gate_a_fidelity.as_deref()?;
        text.starts_with("fail:").then(|| Obstacle {
            pointer: "/gate_a_fidelity",
            message: format!(
                "a build whose gate A is {text} cannot be complete",
                text = quoted(text)
            ),
        })
    }

    /// Why gate B keeps the build from being complete, if it does.
    pub(super) fn presence_obstacle(&self) -> Option<Obstacle> {
        let text = self.gate_b_presence.as_deref()?;
        let issue = self.waiver_issue();
        let message = match text.split_once(':')? {
            _ if self.is_stack_down() => {
                "a build whose proof is blocked because the stack is down cannot be complete, and a waiver does not \
                 change that"
                    .to_owned()
            }
            ("fail" | "blocked", _) if issue.is_none() => {
                format!(
                    "a build whose gate B is {text} can be complete only with a waiver that names its issue",
                    text = quoted(text)
                )
            }
            ("waived", named) if issue.is_some_and(|issue| issue != named.trim()) => format!(
                "gate B says that it is waived by {named}, but the waiver names {}",
                issue.unwrap_or_default()
            ),
            _ => return None,
        };
        Some(Obstacle {
            pointer: "/gate_b_presence",
            message,
        })
    }

    /// The index of the pending gate that a text means; `None` when it means no pending gate. Refused when it means
    /// several.
    pub(super) fn pending_gate(&self, gate: &str) -> Result<Option<usize>> {
        let pending = &self.gates_pending;
        if let Some(at) = pending.iter().position(|other| other == gate) {
            return Ok(Some(at));
        }
        let mut fitting = (0..pending.len()).filter(|&at| same_gate(&pending[at], gate));
        match (fitting.next(), fitting.next()) {
            (at, None) => Ok(at),
            _ => Err(Error::refused(format!(
                "{gate} matches several pending gates; name one of {}",
                pending.join(", "),
                gate = quoted(gate)
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_known_without_its_workstream() {
        assert_eq!(gate_name("type-check (WS2)"), "type-check");
        assert_eq!(gate_name("type-check(WS2)"), "type-check");
        assert_eq!(gate_name("type-check"), "type-check");
        assert_eq!(gate_name("(WS2)"), "(WS2)");
        assert_eq!(gate_name("type-check:WS1"), "type-check");
        assert_eq!(gate_workstream("type-check:WS1"), Some("WS1"));
        assert_eq!(gate_workstream("type-check (WS2)"), Some("WS2"));
        assert_eq!(gate_name("test:unit"), "test:unit");
        assert_eq!(gate_name("test:unit:WS-ui"), "test:unit");
        assert_eq!(gate_name(":WS1"), ":WS1");
        assert!(same_gate("lint:WS2", "lint (WS2)"));
        assert!(!same_gate("lint:WS1", "lint (WS2)"));
        assert!(same_gate("lint", "lint (WS2)"));
        assert!(!same_gate("lint (WS1)", "lint (WS2)"));
        assert!(!same_gate("lint", "lint2 (WS2)"));
    }

    #[test]
    fn the_texts_of_the_proofs_are_understood() {
        for known in ["pass", "fail:2"] {
            assert!(is_fidelity(known), "{known}");
        }
        for none in ["fail", "fail:", "fail:x", "PASS", "pass:1"] {
            assert!(!is_fidelity(none), "{none}");
        }
        for known in [
            "pass",
            "not_applicable",
            "fail:x",
            "blocked:a:b",
            "waived:ISS-7",
        ] {
            assert!(is_presence(known), "{known}");
        }
        for none in ["fail", "fail:", "waived:", "pass:x", "n/a"] {
            assert!(!is_presence(none), "{none}");
        }
    }
}
