//! `ckpt ask`, `approve`, `deny` and `approved`: actions that a person must approve first.

use agent_checkpoint::ledger::{Approval, ApprovalDecision, ApprovalRecord, ApprovalStatus};
use agent_checkpoint::{Error, quoted};

use super::once;
use crate::address::Target;
use crate::args::{Action, Ask, Decide, Once};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;
use crate::report::ledger;

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
        let of_task = target.ledger(global);
        let mut outcome = Outcome::new();
        let record = of_task.ask(&approval.with_expiry(self.time)).map_err(at)?;
        if record.status == ApprovalStatus::Consumed {
            outcome.note(format!(
                "{} was begun with this approval, and no person is asked again: `ckpt effects {}` says what came of it",
                quoted(&record.id),
                target.words()
            ));
        }
        outcome.is_done = true;
        show(&record, &mut outcome, global);
        ledger::tell_pending(std::slice::from_ref(&record), &target, global, &mut outcome);
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
        let of_task = target.ledger(global);
        let approvals = of_task.state().map_err(at)?.approvals;
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
        let record = of_task.decide(record, decision, &self.by).map_err(at)?;
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
    let of_task = target.ledger(global);
    let mut outcome = Outcome::new();
    let approvals = of_task.state().map_err(at)?.approvals;
    let record = approvals.into_iter().find(|record| record.id == action.id);
    let mut record = record.ok_or_else(|| at(not_asked(&action.id)))?;
    if let Some(approval) = action.approval().map_err(at)?
        && !(record.status == ApprovalStatus::Pending && record.digest == approval.digest())
    {
        record = of_task.consume(&approval).map_err(at)?;
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
    outcome.line(ledger::approval(record));
    outcome.line(format!("  {}", record.digest));
}
