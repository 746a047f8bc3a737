//! Approvals: a person approves exactly one action, which is done at most once.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::approval_record::{ApprovalRecord, ApprovalStatus, digest_begins};
use super::identity::{check_numbers, checked, digest};
use super::line::Line;
use super::record::Entries;
use super::{EffectStatus, Ledger, TRIES};
use crate::checkpoint::{Error, Result, stamp};
use crate::is_blank;
use crate::shown::{self, quoted};

/// The longest text that a person is given to read, in bytes.
const MOST: usize = 2048;

/// Longer text without a space may be cut.
const LONGEST_WORD: usize = 512;

/// An action that a person must approve before it is done.
///
/// It is bound to the digest of the exact action: the approval of one action is refused for any other.
///
/// # Examples
///
/// ```
/// use agent_checkpoint::formats::task::TaskCheckpoint;
/// use agent_checkpoint::ledger::{Approval, ApprovalDecision, Effect, EffectDecision};
/// use agent_checkpoint::recorder::{Opened, Recorder};
/// use agent_checkpoint::store::MemoryStore;
/// use agent_checkpoint::{CheckpointStoreExt, Key};
///
/// # fn main() -> agent_checkpoint::Result<()> {
/// let tasks = MemoryStore::new().checkpoints::<TaskCheckpoint>();
/// let key = Key::new("US-003")?;
/// let first = TaskCheckpoint::begin("ui-dev", ["Pay the invoice"], tasks.now());
/// # let Opened::Begun(recorder) = Recorder::begin(&tasks, &key, "ui-dev", &first)? else { return Ok(()) };
/// let pay = Approval::new("invoice 7", &("pay", "ann", 50))?;
/// let asked = recorder.ask(&pay)?;
/// assert!(asked.is_pending(tasks.now()));
///
/// // In the program of a person, who needs no claim:
/// let person = tasks.ledger(&key, "desk");
/// person.decide(&asked, &ApprovalDecision::Approved, "Ann")?;
///
/// // Consumed in the same step in which the payment begins.
/// let effect = Effect::with_id("invoice 7")?.with_approval(pay);
/// let EffectDecision::Do(mut guard) = recorder.effect(&effect)? else { return Ok(()) };
/// guard.done("paid")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Approval {
    id: String,
    digest: String,
    action: String,
    reason: Option<String>,
    expires_in: Duration,
}

impl Approval {
    /// How long it can be decided and used by default: a day.
    pub const EXPIRES_IN: Duration = Duration::from_secs(24 * 60 * 60);

    /// The approval of an action: any JSON, or a text. The person reads the text or the JSON; of a long one at most the
    /// first 2 KiB, and how many more bytes there are.
    ///
    /// The id names the purpose of the action within its task; an effect may have the same id.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) for an id that no [effect](super::Effect::with_id) can have
    /// and for an action that is a blank text; the code `edit` for an action that is not JSON.
    pub fn new(id: impl Into<String>, action: &(impl Serialize + ?Sized)) -> Result<Approval> {
        let action = serde_json::to_value(action)
            .map_err(|error| Error::edit(format!("the action is no JSON: {error}")))?;
        check_numbers("the action", &action)?;
        let text = match &action {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Approval::of(id.into(), &action, &text)
    }

    /// The approval of a command with its arguments. The same words as a text are another action. The approval does not
    /// cover the working folder, the environment, or the contents of the files that the command names.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Approval::new).
    pub fn of_command<W: AsRef<str>>(id: impl Into<String>, words: &[W]) -> Result<Approval> {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let text = shown::command_line(&words);
        Approval::of(id.into(), &Value::from(words), &text)
    }

    fn of(id: String, action: &Value, text: &str) -> Result<Approval> {
        if is_blank(text) {
            return Err(Error::refused("the action to be approved is blank"));
        }
        Ok(Approval {
            id: checked("the id of an approval", id)?,
            digest: digest(action).to_string(),
            action: beginning(text),
            reason: None,
            expires_in: Approval::EXPIRES_IN,
        })
    }

    /// States why it is needed, for the person, who also reads the action. It is not part of the approved action.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) for a text of more than 2 KiB.
    pub fn with_reason(mut self, why: impl Into<String>) -> Result<Self> {
        self.reason = short_text("the reason", Some(why.into()))?;
        Ok(self)
    }

    /// Sets how long after the request it expires. An expired approval is neither decided nor used.
    pub fn with_expiry(mut self, time: Duration) -> Self {
        self.expires_in = time;
        self
    }

    /// Its identity within the task.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The SHA-256 digest of the action, as `sha256:` and 64 digits.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The action as the person reads it.
    #[must_use]
    pub fn action(&self) -> &str {
        &self.action
    }

    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}

/// The decision of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// The action may be done, once.
    Approved,
    /// The action must not be done. This also revokes an approval that is not used yet.
    Denied {
        /// Why, for the agent; at most 2 KiB.
        because: Option<String>,
    },
}

impl Ledger {
    /// Asks for an approval. Asking again for the same action while the request is pending or approved changes nothing,
    /// so an agent that was killed after it asked may ask again. If an effect begun with the approval took place or may
    /// have, nothing is asked either: the returned record is consumed. Any other denied, expired or consumed request is
    /// asked and decided anew.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if the id has another action that is open or may have been
    /// done, if an effect of this id was begun without an approval, and if the time to expire is zero or out of range;
    /// those of [`begin`](Ledger::begin).
    pub fn ask(&self, approval: &Approval) -> Result<ApprovalRecord> {
        self.refuse_former_task()?;
        for _ in 0..TRIES {
            let entries = self.read()?;
            let now = self.now();
            let id = approval.id();
            let found = looked_at(&entries, id, now);
            let stands = |found: &ApprovalRecord| found.is_open() || may_be_done(&entries, found);
            if let Some(found) = found.filter(stands) {
                if found.digest == approval.digest {
                    return Ok(found);
                }
                let next = match found.is_open() {
                    true => "have that denied first, or ask under another id",
                    false => "ask under another id",
                };
                return Err(self.refused(format!(
                    "{} is {} for another action ({}, and this is {}): {next}",
                    quoted(id),
                    found.status.as_str(),
                    digest_begins(&found.digest),
                    digest_begins(&approval.digest)
                )));
            }
            // Do not ask for an action that may have been done.
            let begun = entries.find(id);
            if begun.is_some_and(|effect| effect.status != EffectStatus::NotDone) {
                return Err(self.refused(format!(
                    "{} was begun already, without an approval; what is to be done once more has another id",
                    quoted(id)
                )));
            }
            let time = chrono::TimeDelta::from_std(approval.expires_in).ok();
            let expires = time.and_then(|time| now.checked_add_signed(time));
            let expires = expires.filter(|expires| *expires > now).ok_or_else(|| {
                self.refused(format!(
                    "{} cannot expire in a time that is none or too long; give one such as 24 hours",
                    quoted(id)
                ))
            })?;
            let record = ApprovalRecord::asked(approval, now, &self.by, expires);
            let of_task = self.of_task(&entries);
            if of_task.append(Line::asked(&record), &entries, self.fence)? {
                return Ok(record);
            }
        }
        Err(self.changed_meanwhile())
    }

    /// Decides the request that `record` describes, but not one that was asked anew since. It succeeds whichever owner
    /// has the task, since a person has no claim.
    ///
    /// `by` is a name, not a proof: any process that can write to the store can decide in any name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if the request was asked anew since, is expired or consumed,
    /// or was denied and is now to be approved; for a name that is blank or longer than 256 bytes, and a text of more
    /// than 2 KiB. Those of [`state`](Ledger::state), and any failure to write the line. While the claim on the key
    /// changes, the write is retried for up to about 16 s.
    pub fn decide(
        &self,
        record: &ApprovalRecord,
        decision: &ApprovalDecision,
        by: &str,
    ) -> Result<ApprovalRecord> {
        checked("the name of who decides", by.to_owned())?;
        let because = match decision {
            ApprovalDecision::Approved => None,
            ApprovalDecision::Denied { because } => short_text("the reason", because.clone())?,
        };
        let decided = match decision {
            ApprovalDecision::Approved => ApprovalStatus::Approved,
            ApprovalDecision::Denied { .. } => ApprovalStatus::Denied,
        };
        let id = &*record.id;
        self.tell(|entries| {
            let now = self.now();
            let found = looked_at(entries, id, now).filter(|found| found.is_round_of(record));
            let found = found.ok_or_else(|| {
                self.refused(format!(
                    "{} was asked anew since, or its task has ended: look at what is asked now",
                    quoted(id)
                ))
            })?;
            match (&found.status, &decided) {
                (ApprovalStatus::Consumed | ApprovalStatus::Expired, _)
                | (ApprovalStatus::Denied, ApprovalStatus::Approved) => {
                    Err(self.refused(found.why_not()))
                }
                (there, decided) if there == decided => Ok(None),
                _ => Ok(Some(Line::decided(
                    now,
                    by,
                    record,
                    decided,
                    because.clone(),
                ))),
            }
        })?;
        let entries = self.read()?;
        let found = looked_at(&entries, id, self.now());
        found.ok_or_else(|| self.refused(format!("the task of {} has ended", quoted(id))))
    }

    /// Consumes an approval: of all callers, in any process, one gets the record and does the action. If its process is
    /// killed before that, the approval is still consumed. [`Effect::with_approval`](super::Effect::with_approval) does
    /// both in one step, and the ledger then has the outcome.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) if it was not asked for, was asked for another action, or is
    /// pending, denied, expired or consumed: the error says which. Those of [`begin`](Ledger::begin). After any error
    /// the action must not be done.
    pub fn consume(&self, approval: &Approval) -> Result<ApprovalRecord> {
        self.refuse_former_task()?;
        for _ in 0..TRIES {
            let entries = self.read()?;
            let mut record = self.approved(&entries, approval)?;
            let now = self.now();
            let line = Line::consumed(now, &self.by, &record);
            let of_task = self.of_task(&entries);
            if of_task.append(line, &entries, self.fence)? {
                record.becomes(ApprovalStatus::Consumed, now, &self.by);
                return Ok(record);
            }
        }
        Err(self.changed_meanwhile())
    }

    /// Refuses an effect without an approval if one was asked for under its id.
    pub(super) fn refuse_without_approval(&self, entries: &Entries, id: &str) -> Result<()> {
        match looked_at(entries, id, self.now()) {
            // After a separate `consume` the caller does the action itself.
            Some(found) if found.status != ApprovalStatus::Consumed || found.effect.is_some() => {
                Err(self.refused(format!(
                    "{} is {}, and this comes without its approval: begin it with that, or under another id",
                    quoted(id),
                    found.status.as_str()
                )))
            }
            _ => Ok(()),
        }
    }

    /// The record of the approval, if it may be used now.
    pub(super) fn approved(
        &self,
        entries: &Entries,
        approval: &Approval,
    ) -> Result<ApprovalRecord> {
        let id = quoted(approval.id());
        let Some(found) = looked_at(entries, approval.id(), self.now()) else {
            return Err(self.refused(format!(
                "no agent has asked for the approval of {id}; ask for it first"
            )));
        };
        if found.digest != approval.digest {
            return Err(self.refused(format!(
                "{id} was asked for another action ({}, and this is {}): ask for this one",
                digest_begins(&found.digest),
                digest_begins(&approval.digest)
            )));
        }
        match found.status {
            ApprovalStatus::Approved => Ok(found),
            _ => Err(self.refused(found.why_not())),
        }
    }
}

impl ApprovalRecord {
    /// Why it must not be used.
    fn why_not(&self) -> String {
        let (id, by, since) = (quoted(&self.id), shown::line(&self.by), stamp(self.since));
        match self.status {
            ApprovalStatus::Pending => {
                format!(
                    "{id} is pending: {by} asked for it at {since}, and a person is to approve or deny it first"
                )
            }
            ApprovalStatus::Approved => format!("{id} was approved by {by} at {since}"),
            ApprovalStatus::Denied => {
                let because = self.because.as_deref();
                let because = because.map(|because| format!(" ({})", shown::line(because)));
                let because = because.unwrap_or_default();
                format!("{id} was denied by {by} at {since}{because}; ask anew if that has changed")
            }
            ApprovalStatus::Consumed => {
                format!("{id} was consumed already, by {by} at {since}; ask for another one")
            }
            ApprovalStatus::Expired => {
                format!("{id} expired at {}; ask for it anew", stamp(self.expires))
            }
        }
    }
}

/// Whether an effect that was begun with an approval may have taken place.
fn may_be_done(entries: &Entries, approval: &ApprovalRecord) -> bool {
    let effect = approval.effect.as_deref().and_then(|id| entries.find(id));
    effect.is_some_and(|effect| effect.status != EffectStatus::NotDone)
}

/// The record of an id, with its status at this time.
fn looked_at(
    entries: &Entries,
    id: &str,
    now: chrono::DateTime<chrono::Utc>,
) -> Option<ApprovalRecord> {
    let mut approvals = entries.state.approvals.iter();
    let mut found = approvals.find(|approval| approval.id == id)?.clone();
    found.look_at(now);
    Some(found)
}

/// The beginning of a text for a person, and the length of the rest.
fn beginning(text: &str) -> String {
    if text.len() <= MOST {
        return text.to_owned();
    }
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let kept = (0..=MOST).rev().find(is_boundary).unwrap_or(0);
    // A cut secret is not recognized by redaction, so cut before a word that may be one.
    let word = text[..kept].rfind(char::is_whitespace);
    let kept = word
        .filter(|word| kept - word <= LONGEST_WORD)
        .unwrap_or(kept);
    let more = text.len() - kept;
    format!("{} … and {more} more bytes", &text[..kept])
}

fn short_text(what: &str, text: Option<String>) -> Result<Option<String>> {
    match text.filter(|text| !is_blank(text)) {
        Some(text) if text.len() > MOST => {
            Err(Error::refused(format!("{what} is longer than 2 KiB")))
        }
        text => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_approval_is_of_exactly_one_action() {
        let digest = |action: Value| Approval::new("x", &action).unwrap().digest;
        let pay = digest(json!({ "to": "ann", "cents": 5 }));
        assert_eq!(pay, digest(json!({ "cents": 5, "to": "ann" })));
        for other in [
            json!({ "to": "ann", "cents": 50 }),
            json!({ "to": "ann", "cents": "5" }),
            json!({ "to": "ann" }),
            json!(["ann", 5]),
            json!("rm -r build"),
        ] {
            assert_ne!(pay, digest(other));
        }
        let command = |words: &[&str]| Approval::of_command("x", words).unwrap();
        let remove = command(&["rm", "-r", "build"]);
        assert_ne!(remove.digest, digest(json!("rm -r build")));
        assert_ne!(remove.digest, command(&["rm", "-r build"]).digest);
        assert!(remove.digest.starts_with("sha256:") && remove.digest.len() == 71);
    }

    #[test]
    fn a_person_reads_the_action_and_how_much_more_there_is() {
        let action = |words: &[&str]| Approval::of_command("x", words).unwrap().action;
        assert_eq!(
            action(&["./deploy", "--to=live", "release 1.4", "", "a\nb"]),
            r#"./deploy --to=live "release 1.4" "" "a\nb""#
        );
        let json = Approval::new("x", &json!({ "to": "ann" })).unwrap();
        assert_eq!(json.action(), r#"{"to":"ann"}"#);
        let long = Approval::new("x", &"é".repeat(MOST)).unwrap();
        assert!(long.action.ends_with("é … and 2048 more bytes"));
        assert!(long.action.len() < MOST + 40);
        assert!(Approval::new("x", " \n").is_err());
        assert!(Approval::of_command::<&str>("x", &[]).is_err());
        assert!(Approval::new(" ", "pay").is_err());
        let pay = || Approval::new("x", "pay").unwrap();
        assert!(pay().with_reason("x".repeat(MOST + 1)).is_err());
    }
}
