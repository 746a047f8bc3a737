//! What a task's ledger holds, as lines and as JSON.

use agent_checkpoint::ledger::{
    ApprovalRecord, ApprovalStatus, EffectRecord, EffectStatus, Proofs, ProvenItem, Receipt,
};
use agent_checkpoint::quoted;
use serde_json::Value;

use crate::address::Target;
use crate::global::Global;
use crate::named::shell_word;
use crate::output::{Outcome, one_line, stamp};

/// The effects in doubt.
pub(crate) fn in_doubt(effects: &[EffectRecord]) -> impl Iterator<Item = &EffectRecord> {
    let is_in_doubt = |effect: &&EffectRecord| effect.status == EffectStatus::InDoubt;
    effects.iter().filter(is_in_doubt)
}

/// An effect in a line.
pub(crate) fn effect(effect: &EffectRecord) -> String {
    let status = match &effect.status {
        EffectStatus::Done { receipt } => match exit_code(receipt) {
            None | Some(0) => "done".to_owned(),
            Some(code) => format!("done, exit {code}"),
        },
        EffectStatus::NotDone => "not done".to_owned(),
        EffectStatus::InProgress => "in progress".to_owned(),
        _ => "in doubt".to_owned(),
    };
    let since = stamp(effect.since);
    format!("{status:<12} {since}  {}  ({})", effect.id, effect.by)
}

/// The exit code of a command that `ckpt once` ran.
fn exit_code(receipt: &Receipt) -> Option<u64> {
    let value: Value = receipt.read().ok()?;
    value.get("stdout")?;
    value.get("code")?.as_u64()
}

/// An effect with its receipt as a JSON value, so that secrets in its texts are found.
pub(crate) fn effect_json(effect: &EffectRecord) -> Value {
    let mut value = serde_json::to_value(effect).unwrap_or_default();
    let whole = value["receipt"]["json"]
        .as_str()
        .and_then(|json| serde_json::from_str(json).ok());
    if let (Some(whole), Some(receipt)) = (whole, value.get_mut("receipt")) {
        *receipt = whole;
    }
    value
}

/// What to do about an effect in doubt, and the commands that settle it.
pub(crate) fn doubt(effect: &EffectRecord, target: &Target) -> String {
    let (id, round) = (shell_word(&effect.id), &effect.round);
    let words = target.words();
    let how = effect.how_to_check.as_deref();
    let how = how.map(|how| format!(" ({how})"));
    format!(
        "{} was begun by {} at {}, and it is not recorded whether it took place: find out{}, then `ckpt effects {words} \
         --done={id} --round {round}` or `ckpt effects {words} --not-done={id} --round {round}`",
        effect.id,
        effect.by,
        stamp(effect.since),
        how.unwrap_or_default(),
    )
}

/// Reports the effects in doubt, which are findings.
pub(crate) fn tell_doubts(effects: &[EffectRecord], target: &Target, outcome: &mut Outcome) {
    for effect in in_doubt(effects) {
        outcome.warn(doubt(effect, target));
        outcome.found();
    }
}

/// An approval in a line.
pub(crate) fn approval(record: &ApprovalRecord) -> String {
    let status = record.status.as_str();
    let quoted_in = |word: &str, text: &Option<String>| {
        let text = text
            .as_deref()
            .map(|text| format!(", {word} {}", quoted(text)));
        text.unwrap_or_default()
    };
    let expires = match record.status {
        ApprovalStatus::Pending | ApprovalStatus::Approved => {
            format!(", until {}", stamp(record.expires))
        }
        ApprovalStatus::Expired => format!(", at {}", stamp(record.expires)),
        _ => String::new(),
    };
    let decided = match (&record.decided_by, record.status) {
        (Some(by), ApprovalStatus::Consumed) => format!(", approved by {}", one_line(by)),
        _ => String::new(),
    };
    format!(
        "{status:<12} {}  {}  ({}{decided}{expires}{}{}): {}",
        stamp(record.since),
        record.id,
        one_line(&record.by),
        quoted_in("why:", &record.reason),
        quoted_in("because", &record.because),
        in_one_line(&record.action)
    )
}

/// A text of another program with its line ends escaped.
fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.join("\\n")
}

/// Adds the pending approvals to the output, with the commands that decide them.
pub(crate) fn tell_pending(
    approvals: &[ApprovalRecord],
    target: &Target,
    global: &Global,
    outcome: &mut Outcome,
) {
    let now = global.now();
    for record in approvals.iter().filter(|record| record.is_pending(now)) {
        let (id, round, words) = (shell_word(&record.id), &record.round, target.words());
        outcome.note(format!(
            "a person decides on {} with `ckpt approve {id} {words} --round {round} --by NAME` or `ckpt deny {id} {words} \
             --round {round} --by NAME`",
            quoted(&record.id)
        ));
    }
}

/// A piece of work in a line.
pub(crate) fn proof(item: &ProvenItem) -> String {
    one_line(&format!("{}: {item}", item.item))
}

pub(crate) fn proof_json(item: &ProvenItem) -> Value {
    let mut value = serde_json::to_value(item).unwrap_or_default();
    if let (Some(proof), Some(Value::Object(shown))) = (&item.proof, value.get_mut("proof")) {
        shown.insert("files".to_owned(), proof.files().collect());
    }
    value
}

/// The proofs of `show` and `check` as JSON.
pub(crate) fn proofs_json(proofs: &Proofs) -> Vec<Value> {
    proofs.items().iter().map(proof_json).collect()
}
