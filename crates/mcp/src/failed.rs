//! Why a call failed, and what the agent does next.

use agent_checkpoint_cli::served::Refused;
use rmcp::model::{CallToolResult, ContentBlock};

use crate::bounds;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    code: &'static str,
    message: String,
}

impl Failed {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Failed {
        Failed {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn input(message: impl Into<String>) -> Failed {
        Failed::new("input", message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Failed {
        Failed::new("refused", message)
    }

    /// Replaces some words of the message.
    pub(crate) fn replace(&mut self, words: &str, instead: &str) {
        self.message = self.message.replace(words, instead);
    }

    /// The code, what failed and why, and what to do next.
    pub(crate) fn text(&self) -> String {
        let next = next(self.code);
        let next = next.map_or_else(String::new, |next| format!(". Next: {next}"));
        let message = bounds::line(self.message.trim_end_matches('.'));
        format!("{}: {message}{next}.", self.code)
    }
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Failed {
        let at = refused.report.map(|index| format!("operations[{index}]: "));
        Failed {
            code: refused.code,
            message: format!("{}{}", at.unwrap_or_default(), refused.message),
        }
    }
}

impl From<Failed> for CallToolResult {
    fn from(failed: Failed) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(failed.text())])
    }
}

/// The next step of an agent after a failure of this kind, with the tools that it has.
fn next(code: &str) -> Option<&'static str> {
    Some(match code {
        "claimed" => {
            "leave the task to its owner and take another one that `fleet` lists, or ask the user; who knows that the owner \
             is dead frees it with `ckpt claim --take-over`"
        }
        "fenced" => {
            "stop writing to this task; if it is yours, `begin` with \"carry_on\": true gives you a new fence, else leave it"
        }
        "taken-over" => "stop work on this task",
        "not-found" => "`begin` starts it, and `fleet` lists the keys there are",
        "invalid-key" => "name the task with its id, as `fleet` lists it",
        "locked" => "try again in a few seconds",
        "outcome-unknown" => "it was done or not: the same call again, or `resume`, says which",
        "conflict" | "changed-meanwhile" => "look at it with `resume`, then decide anew",
        "unsupported" => "the resource ckpt://guide/FORMAT has the operations of the format",
        "empty" | "nul-bytes" | "not-utf8" | "syntax" | "truncated" | "trailing-bytes"
        | "too-deep" | "not-an-object" | "merge-conflict" | "corrupt" => {
            "tell the user; nothing was changed, and `ckpt recover` goes on with the newest earlier state"
        }
        "no-store" | "io" => "tell the user: the server's store cannot be used",
        _ => return None,
    })
}
