//! Effects, which must happen at most once, and their identities.

use serde::Serialize;

use super::Approval;
use super::identity::{check_numbers, checked, short_digest};
use crate::checkpoint::{Error, Result};

/// An action of a task outside of its checkpoint that must not happen twice: a mail, a payment, a deployment.
///
/// Its id is its identity: two effects of one task with the same id are one effect.
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
    /// The effect of an action with arguments: `name`, and the digest of the arguments as JSON. The order of the
    /// members of a map does not count, but the order of a list does. So a `HashSet`, or the present time, makes a
    /// different effect in each run.
    ///
    /// # Errors
    ///
    /// Those of [`with_id`](Effect::with_id), [`ErrorKind::Refused`](crate::ErrorKind::Refused) for a number beyond 64 bits
    /// or a fraction of 2^53 and more, and the code `edit` for arguments that are not JSON.
    pub fn new(name: &str, arguments: &(impl Serialize + ?Sized)) -> Result<Effect> {
        let arguments = serde_json::to_value(arguments).map_err(|error| {
            Error::edit(format!("the arguments of an effect are no JSON: {error}"))
        })?;
        check_numbers("an argument of an effect", &arguments)?;
        Effect::with_id(format!("{name} {}", short_digest(&arguments)))
    }

    /// The effect with an id that the caller chooses, such as the request key of the external service.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) for an id that is blank, begins or ends with white space, is longer
    /// than 256 bytes, or contains a control character or another that [`visible`](crate::visible) escapes.
    pub fn with_id(id: impl Into<String>) -> Result<Effect> {
        Ok(Effect {
            id: checked("the id of an effect", id.into())?,
            how_to_check: None,
            approval: None,
        })
    }

    /// Requires this approval. Beginning the effect [consumes](super::Ledger::consume) it in the same step, so a killed
    /// process never leaves one without the other. An effect that took place already, or is in doubt, needs none.
    pub fn with_approval(mut self, approval: Approval) -> Self {
        self.approval = Some(approval);
        self
    }

    /// Describes how a person or an agent finds out whether the effect took place, if that is in doubt.
    pub fn with_check(mut self, how: impl Into<String>) -> Self {
        self.how_to_check = Some(how.into());
        self
    }

    /// The identity of the effect within its task.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The approval that it requires, if any.
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
