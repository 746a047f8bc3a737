//! The work of each tool. All of it blocks.

use std::time::Duration;

use agent_checkpoint::fleet::Row;
use agent_checkpoint::recorder::Owner;
use agent_checkpoint::resume::ResumeDecision;
use agent_checkpoint::{
    CheckpointStoreExt, Claim, ClaimRequest, Fence, Handoff, Operation, ProcessId, Report,
};
use agent_checkpoint_cli::served::{Call, Refused, Said, Served, Task};
use chrono::TimeDelta;

use crate::answer::{Answer, BeginAnswer, Judged, Saved, TaskRow, Tasks, stamp};
use crate::bounds;
use crate::details;
use crate::failed::Failed;
use crate::guards::Guards;
use crate::inputs;

/// The default and the largest size of a prompt, in tokens of 4 bytes.
const USUAL: usize = 8_000;
const LARGEST: u32 = 30_000;

/// How many tasks are listed by default.
const LISTED: u32 = 30;

/// The calls on one store.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) served: Served,
    time_to_live: Duration,
    /// The session of this process, for calls that name none.
    session: String,
    pub(crate) guards: Guards,
}

/// The caller.
struct Caller {
    agent: String,
    session: String,
}

impl Calls {
    pub(crate) fn new(served: Served, time_to_live: Duration) -> Calls {
        let session = served.session().map(str::to_owned);
        Calls {
            session: session.unwrap_or_else(|| Owner::new("").session),
            served,
            time_to_live,
            guards: Guards::default(),
        }
    }

    pub(crate) fn begin(&self, input: inputs::Begin, client: &str) -> Result<Answer, Failed> {
        let caller = self.caller(&input, client)?;
        inputs::check_count("plan", input.plan.len())?;
        if input
            .plan
            .iter()
            .any(|step| agent_checkpoint::is_blank(step))
        {
            return Err(Failed::input(
                "a step of the plan is empty; nothing was written, say it in a few words",
            ));
        }
        let call = caller.call(&input.key, None);
        let task = self.served.begin(&call)?;
        if task.revision()?.is_some() {
            return match input.carry_on {
                true => self.carry_on(&call, &caller, input.budget_tokens),
                false => self.found(&call, input.budget_tokens),
            };
        }
        let format = task.format();
        let given = details::read(format, input.details)?;
        let first = task.first(&input.plan, given);
        let (first, handoff) =
            first.map_err(|refused| details::in_members(format, refused.into()))?;
        let claimed = self.claim(&task, &caller)?;
        let fence = claimed.claim.fence;
        let begun = self
            .served
            .begin(&caller.call(&input.key, Some(fence)))
            .and_then(|task| task.begin(&first));
        match begun {
            Ok(true) => {}
            Ok(false) => {
                claimed.give_back(&task);
                return self.found(&call, input.budget_tokens);
            }
            Err(refused) => {
                claimed.give_back(&task);
                return Err(refused.into());
            }
        }
        let next = handoff.pending.into_iter().next();
        let begun = BeginAnswer {
            outcome: "begun",
            key: input.key,
            format: task.format().name(),
            fence: Some(fence.number()),
            claimed_until: Some(stamp(claimed.claim.expires)),
            next,
            resume: None,
        };
        let first = begun.next.as_deref();
        let first = first.map_or("It has no plan yet.".to_owned(), |it| {
            format!("First: {it}")
        });
        let text = format!("{}\n{first}", ownership("Begun", &begun));
        Answer::new(&begun, &text)
    }

    /// The answer for an existing checkpoint, which is not changed.
    fn found(&self, call: &Call, budget_tokens: Option<u32>) -> Result<Answer, Failed> {
        let judged = self.judged(call, budget_tokens, None)?;
        let begun = BeginAnswer {
            outcome: "found",
            key: call.key.clone(),
            format: judged.format,
            fence: None,
            claimed_until: None,
            next: judged.start_at.clone(),
            resume: Some(judged),
        };
        let judged = begun.resume.as_ref().map(Judged::text);
        let text = format!(
            "{} has a checkpoint already. Nothing was touched, and nothing was claimed. To go on with it, heed what \
             follows, then call `begin` with \"carry_on\": true, which gives you the fence.\n{}",
            begun.key,
            judged.unwrap_or_default()
        );
        Answer::new(&begun, &text)
    }

    /// Claims a task that has a checkpoint, and continues it.
    fn carry_on(
        &self,
        call: &Call,
        caller: &Caller,
        budget_tokens: Option<u32>,
    ) -> Result<Answer, Failed> {
        let task = self.served.write(call)?;
        let before = task.revision()?;
        // Claims are ignored here: the store decides whether the task may be claimed.
        let resume = task.resume(Vec::new(), true)?;
        let plan = &resume.plan;
        if plan.decision >= ResumeDecision::Wait {
            return Err(Failed::refused(format!(
                "{} ({}); nothing was claimed or written",
                plan.message.trim_end_matches('.'),
                plan.decision.as_str()
            )));
        }
        let claimed = self.claim(&task, caller)?;
        let fence = claimed.claim.fence;
        let own = caller.call(&call.key, Some(fence));
        let taken_up = || -> Result<Judged, Failed> {
            if task.revision()? != before {
                return Err(Failed::new(
                    "conflict",
                    "the checkpoint changed while it was claimed: its agent is still at work; nothing was written",
                ));
            }
            claimed.count(&task, &resume.handoff);
            self.served.write(&own)?.take_up()?;
            self.judged(&own, budget_tokens, Some(fence))
        };
        let judged = taken_up().inspect_err(|_| claimed.give_back(&task))?;
        let begun = BeginAnswer {
            outcome: "carried_on",
            key: call.key.clone(),
            format: judged.format,
            fence: Some(fence.number()),
            claimed_until: Some(stamp(claimed.claim.expires)),
            next: judged.start_at.clone(),
            resume: Some(judged),
        };
        let judged = begun.resume.as_ref().map(Judged::text);
        let text = format!(
            "{}\n{}",
            ownership("Carried on", &begun),
            judged.unwrap_or_default()
        );
        Answer::new(&begun, &text)
    }

    pub(crate) fn report(&self, input: inputs::ReportAll) -> Result<Answer, Failed> {
        let reports = inputs::reports(input.operations)?;
        self.save(&input.key, input.fence, &reports)
    }

    pub(crate) fn decide(&self, input: inputs::Decide) -> Result<Answer, Failed> {
        let decision = Operation::Decide {
            text: input.text,
            rationale: input.why,
        };
        self.save(&input.key, input.fence, &[decision.into()])
    }

    fn save(&self, key: &str, fence: u64, reports: &[Report]) -> Result<Answer, Failed> {
        let task = self.owned(key, fence)?;
        let claim = self.keep(&task, Fence::new(fence))?;
        let said = task.report(reports)?;
        let mut saved = saved(key, said);
        saved.claimed_until = claim.map(|claim| stamp(claim.expires));
        let is_complete = |report: &Report| report.operation == Operation::Complete;
        if reports.iter().any(is_complete) {
            saved
                .notes
                .push("note: give the claim back with `hand_over`".to_owned());
        }
        Answer::new(&saved, &saved.text())
    }

    pub(crate) fn resume(&self, input: &inputs::Resume, client: &str) -> Result<Answer, Failed> {
        let judged = self.look_at(&input.key, input.budget_tokens, client)?;
        Answer::new(&judged, &judged.text())
    }

    /// The plan and the prompt with which another agent continues from a checkpoint.
    pub(crate) fn look_at(
        &self,
        key: &str,
        budget_tokens: Option<u32>,
        client: &str,
    ) -> Result<Judged, Failed> {
        let agent = self.served.agent().unwrap_or(client).to_owned();
        let session = self.session.clone();
        let call = Caller { agent, session }.call(key, None);
        self.judged(&call, budget_tokens, None)
    }

    pub(crate) fn hand_over(&self, input: &inputs::HandOver) -> Result<Answer, Failed> {
        let task = self.owned(&input.key, input.fence)?;
        let fence = Fence::new(input.fence);
        let Some(to) = &input.to else {
            let released = task.store().release(task.key(), fence);
            released.map_err(|error| task.error(error))?;
            let said = Said {
                lines: vec![
                    "The claim was given back: any agent may go on with the task.".to_owned(),
                ],
                ..Said::default()
            };
            return self.given_away(&task, &input.key, said);
        };
        inputs::name("to", to)?;
        self.keep(&task, fence)?;
        let said = task.reassign(to, Owner::new(to).session);
        let said = said.map_err(|refused| match refused.code {
            "unsupported" => Failed::refused(format!(
                "a checkpoint of {} stays with its agent; leave `to` out to give the claim back",
                task.format().name()
            )),
            _ => refused.into(),
        })?;
        let answer = self.given_away(&task, &input.key, said);
        // A protocol's own operation for a hand-over leaves the claim.
        let claimed = task.store().claimed(task.key()).ok().flatten();
        let is_own = |claim: &Claim| claim.fence == fence && claim.stands(task.now());
        let is_theirs = |claim: &Claim| claim.agent.as_deref() == Some(to);
        if claimed.is_some_and(|claim| is_own(&claim) && !is_theirs(&claim)) {
            let released = task.store().release(task.key(), fence);
            released.map_err(|error| task.error(error))?;
        }
        answer
    }

    /// The answer of a hand-over, with a warning for each effect that it leaves in doubt.
    fn given_away(&self, task: &Task, key: &str, said: Said) -> Result<Answer, Failed> {
        let mut saved = saved(key, said);
        saved.notes.extend(self.leave_effects(task));
        Answer::new(&saved, &saved.text())
    }

    pub(crate) fn fleet(&self, input: &inputs::Fleet) -> Result<Answer, Failed> {
        let fleet = self.served.fleet()?;
        let limit = input.limit.unwrap_or(LISTED) as usize;
        let limit = limit.clamp(1, bounds::MOST_LISTED);
        let totals = fleet.totals();
        let rows = fleet.rows().iter();
        let mut fitting = rows.filter(|row| !input.resumable || row.is_resumable());
        let tasks = fitting.by_ref().take(limit).map(|row| self.row(row));
        let tasks = Tasks {
            total: totals.rows,
            resumable: totals.resumable,
            results: totals.results.clone(),
            tasks: tasks.collect(),
            left_out: fitting.count(),
            findings: fleet.findings().len(),
        };
        Answer::new(&tasks, &tasks.text())
    }

    fn row(&self, row: &Row) -> TaskRow {
        let next = row.next.as_ref().filter(|_| row.is_resumable());
        let owner = row.owner.as_ref().filter(|owner| owner.stands);
        TaskRow {
            key: self.served.key(row),
            result: row.result(),
            format: row.format,
            agent: row.agent.clone(),
            task: row.task.clone(),
            status: row.status.clone(),
            percent: row.progress.percent,
            updated_at: row.updated_at.as_ref().map(ToString::to_string),
            claimed_by: owner.map(|owner| owner.name.clone()),
            decision: next.map(|next| next.decision.as_str()),
            start_at: next.and_then(|next| next.start_at.clone()),
        }
    }

    fn caller(&self, input: &inputs::Begin, client: &str) -> Result<Caller, Failed> {
        let agent = input.agent.as_deref().or(self.served.agent());
        let session = input.session.as_deref().unwrap_or(&self.session);
        let agent = agent.unwrap_or(client);
        if agent.is_empty() {
            return Err(Failed::input(
                "who are you? Name yourself with agent; nothing was written",
            ));
        }
        inputs::name("agent", agent)?;
        inputs::name("session", session)?;
        Ok(Caller {
            agent: agent.to_owned(),
            session: session.to_owned(),
        })
    }

    /// The checkpoint for a write by the agent whose claim has this fence.
    pub(crate) fn owned(&self, key: &str, fence: u64) -> Result<Task, Failed> {
        let fence = Fence::new(fence);
        let mut call = Call {
            key: key.to_owned(),
            fence: Some(fence),
            ..Call::default()
        };
        let task = self.served.write(&call)?;
        let claim = match claim_of(&task)? {
            Some(claim) if claim.fence == fence => claim,
            other => {
                // The same error that the store would give for a write.
                let checked = Claim::check(other.as_ref(), Some(fence), task.now());
                let error = checked.err().unwrap_or_else(|| Claim::unknown(fence));
                return Err(task.error(error).into());
            }
        };
        let session = claim.agent.as_ref().and_then(|agent| {
            let session = claim.owner.strip_prefix(agent.as_str())?;
            session.strip_prefix(", session ")
        });
        call.session = session.map(str::to_owned);
        call.agent = Some(claim.agent.unwrap_or(claim.owner));
        Ok(self.served.write(&call)?)
    }

    fn claim(&self, task: &Task, caller: &Caller) -> Result<Claimed, Failed> {
        let before = claim_of(task)?;
        let standing = before.as_ref().filter(|claim| claim.stands(task.now()));
        let standing = standing.map(|claim| claim.fence);
        let request = ClaimRequest::new(caller.owner(), self.time_to_live)
            .of_agent(&caller.agent)
            .in_process(ProcessId::current());
        let claim = task.store().claim(task.key(), &request);
        let claim = claim.map_err(|error| task.error(error))?;
        Ok(Claimed {
            is_new: standing != Some(claim.fence),
            before,
            claim,
        })
    }

    /// Renews a claim after half of its time, when its owner reports. It is never renewed without a report.
    pub(crate) fn keep(&self, task: &Task, fence: Fence) -> Result<Option<Claim>, Failed> {
        let claim = claim_of(task)?;
        let half = TimeDelta::from_std(self.time_to_live / 2).unwrap_or(TimeDelta::MAX);
        let is_due = |claim: &Claim| {
            claim.fence == fence && claim.expires.signed_duration_since(task.now()) < half
        };
        if !claim.as_ref().is_some_and(is_due) {
            return Ok(claim);
        }
        let renewed = task.store().renew(task.key(), fence, self.time_to_live);
        Ok(Some(renewed.map_err(|error| task.error(error))?))
    }

    fn judged(
        &self,
        call: &Call,
        budget_tokens: Option<u32>,
        fence: Option<Fence>,
    ) -> Result<Judged, Failed> {
        let task = self.served.read(call)?;
        let resume = task.resume(recording(&task, &call.key, fence), false)?;
        let budget = budget_tokens.map(|tokens| tokens.clamp(200, LARGEST) as usize);
        let rendered = self.served.prompt(&resume, budget, USUAL)?;
        Ok(Judged::new(&call.key, &resume, rendered))
    }
}

impl Caller {
    fn owner(&self) -> String {
        Owner::new(&self.agent)
            .in_session(&self.session)
            .to_string()
    }

    fn call(&self, key: &str, fence: Option<Fence>) -> Call {
        Call {
            key: key.to_owned(),
            // A client without a name may only read.
            agent: Some(self.agent.clone()).filter(|agent| !agent.is_empty()),
            session: Some(self.session.clone()),
            fence,
        }
    }
}

/// A claim, the last one before it, and whether this call made it.
struct Claimed {
    claim: Claim,
    before: Option<Claim>,
    is_new: bool,
}

impl Claimed {
    /// Counts the attempt that ended before this claim. If that cannot be written, the agent still gets its task.
    fn count(&self, task: &Task, handoff: &Handoff) {
        // A session whose claim expired continues its own attempt.
        let is_anothers = |before: &&Claim| {
            before.owner != self.claim.owner || before.process != self.claim.process
        };
        let before = self.before.as_ref().filter(is_anothers);
        let counted = task.count_take_over(before, &self.claim, handoff);
        if let Err(refused) = counted {
            tracing::warn!(key = %task.key(), error = %refused.message, "an attempt that ended is not counted");
        }
    }

    /// Releases the claim after a later step failed. A claim that cannot be released expires.
    fn give_back(&self, task: &Task) {
        if self.is_new
            && let Err(error) = task.store().release(task.key(), self.claim.fence)
        {
            tracing::warn!(key = %task.key(), %error, "the claim was not released; it lasts until it expires");
        }
    }
}

fn claim_of(task: &Task) -> Result<Option<Claim>, Refused> {
    let claim = task.store().claimed(task.key());
    claim.map_err(|error| task.error(error))
}

fn saved(key: &str, said: Said) -> Saved {
    Saved {
        key: key.to_owned(),
        done: said.lines,
        notes: said.notes,
        claimed_until: None,
    }
}

/// The sentence that a task belongs to the caller.
fn ownership(word: &str, begun: &BeginAnswer) -> String {
    format!(
        "{word}: {} is yours until {}; reports renew that. Fence: {}. Pass it to `report`, `decide` and `hand_over`.",
        begun.key,
        begun.claimed_until.as_deref().unwrap_or_default(),
        begun.fence.unwrap_or_default(),
    )
}

/// The calls with which the next agent records its work.
fn recording(task: &Task, key: &str, fence: Option<Fence>) -> Vec<String> {
    let name = serde_json::Value::from(key);
    let given = fence.map_or("FENCE".to_owned(), |fence| fence.to_string());
    let operations = task.format().operations();
    let mut lines = Vec::new();
    if fence.is_none() {
        lines.push(format!(
            "begin {{\"key\": {name}, \"carry_on\": true}}   (claims the task, and gives the fence for the calls below)"
        ));
    }
    let done = ["step done", "subtask done", "task done", "workstream done"];
    if let Some(done) = done.iter().find(|done| operations.contains(done)) {
        let member = if *done == "step done" { "text" } else { "id" };
        lines.push(format!(
            "report {{\"key\": {name}, \"fence\": {given}, \"operations\": [{{\"op\": \"{done}\", \"{member}\": \"TEXT\"}}]}}   \
             (the operations of this format: {})",
            operations.join(", ")
        ));
    }
    if operations.contains(&"decide") {
        lines.push(format!(
            "decide {{\"key\": {name}, \"fence\": {given}, \"text\": \"TEXT\", \"why\": \"TEXT\"}}"
        ));
    }
    lines.push(format!(
        "hand_over {{\"key\": {name}, \"fence\": {given}}}   (when you stop, or the task is complete)"
    ));
    lines
}
