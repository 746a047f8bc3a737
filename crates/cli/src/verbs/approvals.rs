//! `ckpt ask`, `approve`, `deny` and `approved`: actions that a person must approve first.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use agent_checkpoint::ledger::{Approval, ApprovalDecision, ApprovalRecord, ApprovalStatus};
use agent_checkpoint::{Error, quoted};

use super::effects::ledger;
use super::now;
use super::once::{self, Once};
use crate::address::Target;
use crate::args::id;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::{Global, span};
use crate::named::shell_word;
use crate::output::{Outcome, one_line, stamp};

/// A request for an approval.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    #[command(flatten)]
    action: Action,
    /// Why it is needed, for the person who decides
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// How long it can be decided and then used, such as 2h
    #[arg(long = "for", value_name = "TIME", value_parser = span, default_value = "24h")]
    time: Duration,
}

/// The action to approve: COMMAND, or a text.
#[derive(Debug, clap::Args)]
pub(crate) struct Action {
    /// The id of the action within the task
    #[arg(value_name = "ID", allow_hyphen_values = true, value_parser = id)]
    id: String,
    /// The exact action, if it is not a command
    #[arg(long, value_name = "TEXT", conflicts_with = "command")]
    action: Option<String>,
    /// The exact command and its arguments, after `--`
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
}

/// A decision on an approval.
#[derive(Debug, clap::Args)]
pub(crate) struct Decide {
    /// The id of the requested action
    #[arg(value_name = "ID", allow_hyphen_values = true)]
    id: String,
    /// The checkpoint file; or --store
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The person who decides
    #[arg(long, value_name = "NAME")]
    by: String,
    /// Only if this is the current round of asking, as in the line that the plan prints for the decision
    #[arg(long, value_name = "NAME")]
    round: Option<String>,
}

impl Action {
    /// The approval, if an action is named.
    fn approval(&self) -> Result<Option<Approval>, Error> {
        let words = self.command.iter().map(|word| {
            let refused = || {
                let word = quoted(&word.display().to_string());
                Error::refused(format!("{word} is not UTF-8, and cannot be approved"))
            };
            word.to_str().ok_or_else(refused)
        });
        let words = words.collect::<Result<Vec<_>, Error>>()?;
        match &self.action {
            Some(text) => Approval::new(&*self.id, text).map(Some),
            None if words.is_empty() => Ok(None),
            None => Approval::of_command(&*self.id, &words).map(Some),
        }
    }
}

impl Ask {
    pub(super) fn run(&self, global: &Global) -> Result<Outcome, Failure> {
        let target = Target::to_write(global)?;
        target.require_file()?;
        let at = |error| target.error(error);
        let approval = self.action.approval().map_err(at)?;
        let mut approval = approval.ok_or_else(|| {
            Failure::usage("what is to be approved? Name the COMMAND after `--`, or --action TEXT")
        })?;
        if let Some(why) = &self.why {
            approval = approval.with_reason(why).map_err(at)?;
        }
        let ledger = ledger(&target, global);
        let mut outcome = Outcome::new();
        let record = ledger.ask(&approval.with_expiry(self.time)).map_err(at)?;
        if record.status == ApprovalStatus::Consumed {
            outcome.note(format!(
                "{} was begun with this approval, and no person is asked again: `ckpt effects {}` says what came of it",
                quoted(&record.id),
                target.words()
            ));
        }
        outcome.is_done = true;
        show(&record, &mut outcome, global);
        tell_pending(std::slice::from_ref(&record), &target, global, &mut outcome);
        Ok(outcome)
    }
}

impl Decide {
    pub(super) fn run(
        &self,
        decision: &ApprovalDecision,
        global: &Global,
    ) -> Result<Outcome, Failure> {
        let target = Target::to_change(self.file.as_deref(), global)?;
        let at = |error| target.error(error);
        let ledger = ledger(&target, global);
        let approvals = ledger.state().map_err(at)?.approvals;
        let record = approvals.iter().find(|record| record.id == self.id);
        let record = record.ok_or_else(|| at(not_asked(&self.id)))?;
        let is_it = |round: &String| *round == record.round;
        if !self.round.as_ref().is_none_or(is_it) {
            return Err(at(Error::refused(format!(
                "{} was asked anew since; look at what is asked now with `ckpt show {}`",
                quoted(&self.id),
                target.words()
            ))));
        }
        let record = ledger.decide(record, decision, &self.by).map_err(at)?;
        let mut outcome = Outcome::new();
        outcome.is_done = true;
        show(&record, &mut outcome, global);
        Ok(outcome)
    }
}

/// Checks an approval, or consumes it.
pub(super) fn approved(action: &Action, global: &Global) -> Result<Outcome, Failure> {
    if !action.command.is_empty() {
        return Ok(match action.approval() {
            Ok(approval) => {
                let once = approval.map(|approval| Once::approved(approval, &action.command));
                once.map_or_else(Outcome::new, |once| once::run(&once, global))
            }
            Err(error) => once::did_not_run(error.into()),
        });
    }
    let consumes = action.action.is_some();
    let target = match consumes {
        true => Target::to_write(global)?,
        false => Target::to_look_at(None, global)?,
    };
    let at = |error| target.error(error);
    let ledger = ledger(&target, global);
    let mut outcome = Outcome::new();
    let approvals = ledger.state().map_err(at)?.approvals;
    let record = approvals.into_iter().find(|record| record.id == action.id);
    let mut record = record.ok_or_else(|| at(not_asked(&action.id)))?;
    if let Some(approval) = action.approval().map_err(at)?
        && !(record.status == ApprovalStatus::Pending && record.digest == approval.digest())
    {
        record = ledger.consume(&approval).map_err(at)?;
        outcome.is_done = true;
        show(&record, &mut outcome, global);
        return Ok(outcome);
    }
    show(&record, &mut outcome, global);
    outcome.exit = match record.status {
        ApprovalStatus::Approved => Exit::Done,
        ApprovalStatus::Pending => Exit::Findings,
        _ => Exit::Refused,
    };
    Ok(outcome)
}

fn not_asked(id: &str) -> Error {
    Error::refused(format!(
        "no agent has asked for the approval of {}; ask for it with `ckpt ask`",
        quoted(id)
    ))
}

/// Prints one approval.
fn show(record: &ApprovalRecord, outcome: &mut Outcome, global: &Global) {
    if global.json {
        outcome.json(record);
        return;
    }
    outcome.line(line(record));
    outcome.line(format!("  {}", record.digest));
}

/// An approval in a line.
pub(crate) fn line(record: &ApprovalRecord) -> String {
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

/// Adds the pending approvals to the output, with the commands that decide them.
pub(super) fn tell_pending(
    approvals: &[ApprovalRecord],
    target: &Target,
    global: &Global,
    outcome: &mut Outcome,
) {
    let now = now(global);
    for record in approvals.iter().filter(|record| record.is_pending(now)) {
        let (id, round, words) = (shell_word(&record.id), &record.round, target.words());
        outcome.note(format!(
            "a person decides on {} with `ckpt approve {id} {words} --round {round} --by NAME` or `ckpt deny {id} {words} \
             --round {round} --by NAME`",
            quoted(&record.id)
        ));
    }
}

/// A text of another program with its line ends escaped.
fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.join("\\n")
}
