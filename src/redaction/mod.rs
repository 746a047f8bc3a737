//! Redaction: changes texts, such as secrets, before they are saved or given to a model.

mod assignments;
mod secrets;
mod text;
mod tokens;

use std::fmt;
use std::sync::Arc;

use crate::json::{Document, EditError, Kind, Node};

/// A function that changes texts before a save or in a prompt, such as secrets in a note.
///
/// *At a save* ([`Checkpoints::with_redaction`](crate::Checkpoints::with_redaction); off by default, since it changes
/// what is stored) it is called with the JSON pointer and the text of every string value whose text was nowhere in the
/// checkpoint before; a returned `Some` replaces the text. Texts that were in the file before and the names of members
/// are not changed.
///
/// *In a prompt* (`PromptOptions::with_redaction`; [`secrets`](Redaction::secrets) by default, since a prompt leaves
/// the machine and a mark in it loses nothing) it is called with every text that the template shows, and an empty
/// pointer.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::Redaction;
///
/// let shown = Redaction::secrets().redact("", "deploy with ghp_0123456789abcdefghijABCDEFGHIJ012345");
/// assert_eq!(shown.as_deref(), Some("deploy with [redacted: github-token]"));
/// assert_eq!(Redaction::secrets().redact("", "commit 3fa94c1f"), None);
/// ```
#[derive(Clone)]
pub struct Redaction(Arc<Redact>);

type Redact = dyn Fn(&str, &str) -> Option<String> + Send + Sync;

impl Redaction {
    /// Creates a redaction that calls `redact(pointer, text)`.
    pub fn new(redact: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static) -> Self {
        Redaction(Arc::new(redact))
    }

    /// Replaces texts with the shape of a secret by a mark that names its kind, such as `[redacted: github-token]`.
    ///
    /// The shapes are those of some eighty families that secret scanners list: keys of language models (Anthropic,
    /// OpenAI, OpenRouter, Google, xAI, Groq and others), tokens of code hosts and registries (GitHub, GitLab,
    /// Atlassian, npm, PyPI, crates.io, Docker), of clouds and services (AWS, Azure, DigitalOcean, Vault, Slack,
    /// Stripe, Shopify), webhooks, blocks with a private key, JSON web tokens, `Bearer` and `Basic` credentials,
    /// passwords in URLs, and values that are assigned to a name such as `password` or `API_KEY`. Secrets of other
    /// kinds are found if they are random tokens after a prefix, of at least 32 letters and digits, or 20 if the prefix
    /// ends with a word for a secret (`acme_live_…`). Hashes, ids and placeholders (`$TOKEN`, `<token>`) stay. The time
    /// is linear in the text.
    #[must_use]
    pub fn secrets() -> Self {
        Redaction::new(|_, text| secrets::redacted(text))
    }

    /// Applies this redaction, and then `next` to the result.
    #[must_use]
    pub fn and(self, next: Redaction) -> Self {
        Redaction::new(move |pointer, text| match self.redact(pointer, text) {
            Some(redacted) => Some(next.redact(pointer, &redacted).unwrap_or(redacted)),
            None => next.redact(pointer, text),
        })
    }

    /// Returns the replacement of the text, or `None` if it stays.
    #[must_use]
    pub fn redact(&self, pointer: &str, text: &str) -> Option<String> {
        (self.0)(pointer, text)
    }

    /// Redacts the strings of `wanted` that are not in `before`; returns whether any was changed.
    pub(crate) fn apply(
        &self,
        wanted: &mut Document,
        before: Option<&Document>,
    ) -> Result<bool, EditError> {
        let mut known = std::collections::HashSet::new();
        if let Some(before) = before {
            walk(before.root(), &mut |node| {
                known.insert(node.raw());
            });
        }
        let mut changes = Vec::new();
        walk(wanted.root(), &mut |node| {
            if known.contains(node.raw()) {
                return;
            }
            if let Some(text) = node.as_str() {
                let pointer = node.pointer();
                if let Some(redacted) = self.redact(&pointer, &text) {
                    changes.push((pointer, redacted));
                }
            }
        });
        let mut changed = false;
        for (pointer, redacted) in changes {
            changed |= wanted.set(&pointer, &redacted)?;
        }
        Ok(changed)
    }
}

/// The text from `from` on without its [secrets](Redaction::secrets), also without the rest of one that begins before.
pub(crate) fn without_secrets_from(text: &str, from: usize) -> String {
    let kept = || text.get(from..).unwrap_or_default().to_owned();
    secrets::redacted_from(text, from).unwrap_or_else(kept)
}

fn walk<'d>(node: Node<'d>, visit: &mut dyn FnMut(Node<'d>)) {
    match node.kind() {
        Kind::String => visit(node),
        Kind::Array => node.elements().for_each(|child| walk(child, visit)),
        Kind::Object => node.members().for_each(|(_, child)| walk(child, visit)),
        Kind::Null | Kind::Bool | Kind::Number => {}
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction")
    }
}
