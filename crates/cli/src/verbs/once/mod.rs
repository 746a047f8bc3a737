//! `ckpt once`: a command that runs at most once for a task.

mod output;
mod waiting;

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use agent_checkpoint::ErrorKind;
use agent_checkpoint::ledger::{
    Approval, ApprovalRecord, Effect, EffectDecision, EffectGuard, EffectRecord, EffectStatus,
    Forwarding, Ledger, Receipt, Settlement,
};

use output::{Kept, Output};
pub(crate) use waiting::wait_and_run;
use waiting::{NOT_RUN, Waiting};

use crate::address::Target;
use crate::args::Once;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::{Outcome, stamp};
use crate::report::ledger::doubt;

pub(super) fn run(once: &Once, global: &Global) -> Outcome {
    once.run(global).unwrap_or_else(did_not_run)
}

/// The outcome if the command did not run.
pub(super) fn did_not_run(failure: Failure) -> Outcome {
    let mut outcome = Outcome::from(failure);
    outcome.code = Some(NOT_RUN);
    outcome
}

/// The outcome of a refused command line: its command did not run.
pub(crate) fn refused_words(mut outcome: Outcome) -> Outcome {
    let has_command = std::env::args_os().any(|word| word == "--");
    let mut words = std::env::args_os().take_while(|word| word != "--");
    let runs = |word: OsString| word == "once" || (has_command && word == "approved");
    if outcome.exit == Exit::Failed && words.any(runs) {
        outcome.code = Some(NOT_RUN);
    }
    outcome
}

impl Once {
    /// A command that runs once and requires an approval with the same id.
    pub(super) fn approved(approval: Approval, command: &[OsString]) -> Once {
        Once {
            id: approval.id().to_owned(),
            check: None,
            how: None,
            retry_on: Vec::new(),
            command: command.to_vec(),
            approval: Some(approval),
        }
    }

    fn run(&self, global: &Global) -> Result<Outcome, Failure> {
        let target = Target::to_write(global)?;
        target.require_file()?;
        let at = |error| target.error(error);
        let mut effect = Effect::with_id(&self.id).map_err(at)?;
        let by_check = |check: &String| {
            format!("`{check}` ends with 0 where it took place, and with 1 where it did not")
        };
        if let Some(how) = self.how.clone().or(self.check.as_ref().map(by_check)) {
            effect = effect.with_check(how);
        }
        if let Some(approval) = &self.approval {
            effect = effect.with_approval(approval.clone());
        }
        let ledger = target.ledger(global);
        let mut check = self.check.as_deref();
        loop {
            let effects = ledger.effects().map_err(at)?;
            let known = effects.into_iter().find(|known| known.id == self.id);
            match known.map(|known| (known.status.clone(), known)) {
                None | Some((EffectStatus::NotDone, _)) => {
                    let waiting = Waiting::new(&self.command);
                    let waiting = waiting.map_err(|error| self.cannot_run(&error.to_string()))?;
                    let ledger = ledger.clone().in_process(waiting.process());
                    match ledger.begin(&effect) {
                        Ok(EffectDecision::Do(guard)) => {
                            return self.run_now(waiting, guard, &target);
                        }
                        // Another process was faster; the next turn of the loop handles its effect.
                        Ok(_) => waiting.dismiss(),
                        Err(error) => {
                            waiting.dismiss();
                            return Err(at(error));
                        }
                    }
                }
                Some((EffectStatus::Done { receipt }, record)) => {
                    self.refuse_another(&ledger, &target)?;
                    return Ok(self.again(&receipt, &record));
                }
                Some((EffectStatus::InProgress, record)) => {
                    return Err(self.not_run(&target, &in_progress(&record)));
                }
                Some((_, record)) => {
                    if record.may_still_run() {
                        return Err(self.not_run(&target, &cannot_be_seen(&record, &target)));
                    }
                    let settlement = check.take().map(checked).transpose()?.flatten();
                    let Some(settlement) = settlement else {
                        return Err(self.not_run(&target, &doubt(&record, &target)));
                    };
                    match ledger.settle(&record, settlement) {
                        // Another process settled it, and may have begun it again.
                        Err(error) if matches!(error.kind(), ErrorKind::Refused { .. }) => {}
                        settled => settled.map_err(at)?,
                    }
                }
            }
        }
    }

    /// Refuses to return the result of an effect that took place without an approval of this command.
    fn refuse_another(&self, ledger: &Ledger, target: &Target) -> Result<(), Failure> {
        let Some(approval) = &self.approval else {
            return Ok(());
        };
        let state = ledger.state().map_err(|error| target.error(error))?;
        let is_of_this = |record: &ApprovalRecord| {
            record.effect.as_deref() == Some(&*self.id) && record.digest == approval.digest()
        };
        if state.approvals.iter().any(is_of_this) {
            return Ok(());
        }
        let why = format!(
            "{} took place, and not with an approval of this command: ask under another ID",
            self.id
        );
        Err(self.not_run(target, &why))
    }

    /// Lets the command run and records its result.
    fn run_now(
        &self,
        waiting: Waiting,
        mut guard: EffectGuard,
        target: &Target,
    ) -> Result<Outcome, Failure> {
        let mut running = match waiting.run() {
            Ok(running) => running,
            Err(error) => {
                guard.not_done().map_err(|error| target.error(error))?;
                return Err(self.cannot_run(&error.to_string()));
            }
        };
        let [out, err] = [Arc::<Mutex<Kept>>::default(), Arc::default()];
        let stdout = Forwarding::on(running.child.stdout.take(), io::stdout(), &out);
        let stderr = Forwarding::on(running.child.stderr.take(), io::stderr(), &err);
        let status = running.child.wait();
        if let Some(why) = running.failure() {
            guard.not_done().map_err(|error| target.error(error))?;
            return Err(self.cannot_run(&why));
        }
        let status = match status {
            Ok(status) => status,
            Err(error) => {
                let mut outcome = Outcome::from(Failure::new(format!(
                    "it is not known how the command ended: {error}; {} is in doubt",
                    self.id
                )));
                outcome.is_done = true;
                return Ok(outcome);
            }
        };
        let output = |code| Output::new(code, &stdout.end(), &stderr.end());
        let mut outcome = Outcome::new();
        let Some(code) = code_of(status) else {
            outcome.warn(format!(
                "a signal ended the command, so it is in doubt whether {} took place: `ckpt effects {}` says how to settle that",
                self.id,
                target.words()
            ));
            outcome.code = Some(code_of_signal(status));
            return Ok(outcome);
        };
        outcome.code = Some(code);
        let recorded = match self.retry_on.contains(&code) {
            true => guard.not_done(),
            false => guard.done(&output(code)).map(drop),
        };
        if code != 0 && !self.retry_on.contains(&code) {
            outcome.note(format!(
                "{} took place with exit code {code}, and will not run again; --retry-on names codes that may",
                self.id
            ));
        }
        if let Err(error) = recorded {
            outcome.fail(&target.error(error));
            outcome.warn(format!(
                "the command ran, and it is not recorded that {} took place: it is in doubt",
                self.id
            ));
        }
        Ok(outcome)
    }

    /// The recorded result of the command: its output and exit code.
    fn again(&self, receipt: &Receipt, record: &EffectRecord) -> Outcome {
        let mut outcome = Outcome::new();
        outcome.code = Some(0);
        let Ok(output) = receipt.read::<Output>() else {
            outcome.note(format!(
                "{} took place already, as was settled; nothing was run",
                self.id
            ));
            return outcome;
        };
        output.stdout.write_to(io::stdout());
        output.stderr.write_to(io::stderr());
        outcome.note(format!(
            "nothing was run: {} took place at {} by {} with exit code {}, and this is its output; what is to be done once \
             more has another ID",
            self.id,
            stamp(record.since),
            record.by,
            output.code
        ));
        let omitted = output.stdout.omitted + output.stderr.omitted;
        if omitted > 0 {
            outcome.note(format!(
                "{omitted} bytes of the output of {} were not kept",
                self.id
            ));
        }
        outcome.code = Some(output.code);
        outcome
    }

    fn cannot_run(&self, why: &str) -> Failure {
        let name = self.command.first().map(|name| name.display().to_string());
        Failure::new(format!("cannot run {}: {why}", name.unwrap_or_default()))
    }

    fn not_run(&self, target: &Target, why: &str) -> Failure {
        Failure::new(format!("{}: {why}; nothing was run", target.place()))
    }
}

fn in_progress(record: &EffectRecord) -> String {
    let process = record.process.as_ref();
    let process = process.map(|process| format!(", in process {}", process.pid));
    format!(
        "{} is at {} since {}{}",
        record.by,
        record.id,
        stamp(record.since),
        process.unwrap_or_default()
    )
}

/// Why no check is run: its result would be outdated a moment later.
fn cannot_be_seen(record: &EffectRecord, target: &Target) -> String {
    format!(
        "{}; its process cannot be seen from here, so end it for sure before you look",
        doubt(record, target)
    )
}

/// The result of the check of an effect in doubt. Its output is not the output of the command.
fn checked(check: &str) -> Result<Option<Settlement>, Failure> {
    let shell = if cfg!(windows) {
        ["cmd", "/C"]
    } else {
        ["sh", "-c"]
    };
    let status = Command::new(shell[0])
        .args([shell[1], check])
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status();
    let status =
        status.map_err(|error| Failure::new(format!("the check cannot be run: {error}")))?;
    Ok(match status.code() {
        Some(0) => Some(Settlement::done(&())?),
        Some(1) => Some(Settlement::NotDone),
        _ => None,
    })
}

/// The exit code of a command that ended by itself.
fn code_of(status: ExitStatus) -> Option<u8> {
    let code = status.code()?;
    Some(u8::try_from(code).unwrap_or(u8::MAX))
}

/// The exit code that a shell reports for a command that was ended by a signal.
fn code_of_signal(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = (!status.success()).then_some(0);
    128 + u8::try_from(signal.unwrap_or_default()).unwrap_or_default()
}
