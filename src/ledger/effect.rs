//! What is to happen once: an effect and its identity.

use serde::Serialize;

use super::Approval;
use super::identity::{checked, short_digest};
use crate::checkpoint::{Error, Result};

/// Something that a task does outside of its checkpoint, and that must not happen twice: a mail, a payment, a
/// deployment.
///
/// Its id is what the effect *is*: two effects of one task with the same id are one effect.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::ledger::Effect;
///
/// # fn main() -> agent_checkpoint::Result<()> {
/// let mail = Effect::new("send-mail", &("team@example.com", "The build is green"))?
///     .with_check("look for the subject in the folder of sent mail");
/// assert!(mail.id().starts_with("send-mail "));
/// let deploy = Effect::with_id("deploy release 1.4 to staging")?;
/// # assert_ne!(mail.id(), deploy.id());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Effect {
    id: String,
    how_to_check: Option<String>,
    approval: Option<Approval>,
}

impl Effect {
    /// The effect of doing this with these arguments: `name`, and the digest of the arguments as JSON. The order of the
    /// members of a map does not count; that of the elements of a list does, so a `HashSet`, or the present time, makes
    /// another effect of it in each run.
    ///
    /// # Errors
    ///
    /// Those of [`with_id`](Effect::with_id), and the code `edit` for arguments that are no JSON.
    pub fn new(name: &str, arguments: &(impl Serialize + ?Sized)) -> Result<Effect> {
        let arguments = serde_json::to_value(arguments).map_err(|error| {
            Error::edit(format!("the arguments of an effect are no JSON: {error}"))
        })?;
        Effect::with_id(format!("{name} {}", short_digest(&arguments)))
    }

    /// The effect with an id of the caller's, such as the key by which the service itself knows a request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) for an id that is blank, longer than 256 bytes, or has a
    /// letter in it that hides or acts, such as a control character.
    pub fn with_id(id: impl Into<String>) -> Result<Effect> {
        Ok(Effect {
            id: checked("the id of an effect", id.into())?,
            how_to_check: None,
            approval: None,
        })
    }

    /// Has it begin only with this approval, which is [used up](super::Ledger::consume) in the same step: a process that
    /// is killed never leaves one without the other. What took place already, or is in doubt, needs none.
    pub fn with_approval(mut self, approval: Approval) -> Self {
        self.approval = Some(approval);
        self
    }

    /// Says how a person or an agent finds out whether the effect took place, where that is in doubt.
    pub fn with_check(mut self, how: impl Into<String>) -> Self {
        self.how_to_check = Some(how.into());
        self
    }

    /// The identity of the effect within its task.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The approval with which alone it begins.
    #[must_use]
    pub fn approval(&self) -> Option<&Approval> {
        self.approval.as_ref()
    }

    /// How to find out whether it took place.
    #[must_use]
    pub fn how_to_check(&self) -> Option<&str> {
        self.how_to_check.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_effect_is_what_it_does_with_what() {
        let id = |arguments: Value| Effect::new("pay", &arguments).unwrap().id;
        let paid = id(json!({ "to": "ann", "cents": 5, "of": [1, { "a": 1, "b": 2 }] }));
        assert_eq!(
            paid,
            id(json!({ "of": [1, { "b": 2, "a": 1 }], "cents": 5, "to": "ann" }))
        );
        for other in [
            json!({ "to": "ann", "cents": 50, "of": [1, { "a": 1, "b": 2 }] }),
            json!({ "to": "ann", "cents": 5, "of": [{ "a": 1, "b": 2 }, 1] }),
            json!({ "to": "ann", "cents": "5", "of": [1, { "a": 1, "b": 2 }] }),
            json!({ "to": "ann", "cents": 5 }),
        ] {
            assert_ne!(paid, id(other));
        }
        let ab = json!(["a", "b"]);
        assert_ne!(id(ab), id(json!(["a,b"])));
        assert_ne!(paid, Effect::new("refund", &json!({})).unwrap().id);
        // Nothing depends on the machine or on features of serde_json.
        assert_eq!(
            id(json!({ "n": 1.5 })),
            Effect::new("pay", &BTreeMap::from([("n", 1.5)]))
                .unwrap()
                .id
        );
    }

    #[test]
    fn an_id_is_one_line_of_text() {
        assert_eq!(Effect::with_id("release 1.4").unwrap().id(), "release 1.4");
        for bad in [
            String::new(),
            "  ".into(),
            "a\nb".into(),
            "a\u{202e}b".into(),
            "x".repeat(257),
        ] {
            assert!(Effect::with_id(bad.clone()).is_err(), "{bad:?}");
        }
    }
}
