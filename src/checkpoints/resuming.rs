//! How another agent carries on from a checkpoint.

use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};

use super::Checkpoints;
use super::dropped::{NEWEST, cut_from};
use crate::checkpoint::{
    Checkpoint, Claim, DoneItem, Error, ErrorKind, Handoff, Key, Result, ResumePlan, ResumeReason,
    judge,
};
use crate::event;
use crate::json::{Corrupt, CorruptCode};
use crate::ledger::{LedgerState, Proofs};
use crate::liveness::Liveness;
use crate::resume::{Found, Resume, ResumeOptions, foreign};
use crate::shown;
use crate::staleness::{Basis, Staleness, Tracking};
use crate::store::{EntryId, Stored, TaskContext};

/// How long after a report its agent is likely to be still at work.
const MOMENTS: TimeDelta = TimeDelta::minutes(5);

impl<C: Checkpoint> Checkpoints<C> {
    /// How another agent carries on from a checkpoint: the verdict, the plan and everything that the prompt needs.
    ///
    /// There is a plan even if the document cannot be read: it is made from the newest earlier state that can
    /// be read ([`Resume::recover_with`]), or says to start over. This call recovers nothing.
    ///
    /// # Errors
    ///
    /// Those of [`stale`](Checkpoints::stale), but [`ErrorKind::Corrupt`] only for a document that is merely
    /// nested too deeply. In stores that have them, those of
    /// [`CheckpointStoreExt::claimed`](crate::CheckpointStoreExt::claimed) and
    /// [`CheckpointStoreExt::states`](crate::CheckpointStoreExt::states).
    pub fn resume(&self, key: &Key, options: &ResumeOptions) -> Result<Resume> {
        let began = Instant::now();
        match self.stored(key) {
            Ok(stored) => {
                let resume = self.resume_from(key, &stored, None, options)?;
                let agent = resume.handoff.agent.as_deref();
                event::happened("resumed", key, Some(&stored.revision), agent, began);
                Ok(resume)
            }
            Err(error) => {
                let Some(damage) = recoverable(&error) else {
                    return Err(error);
                };
                match self.newest_good(key)? {
                    Some((entry, stored)) => {
                        self.resume_from(key, &stored, Some((damage, entry)), options)
                    }
                    None => self.resume_from_nothing(key, damage, options),
                }
            }
        }
    }

    fn resume_from(
        &self,
        key: &Key,
        stored: &Stored,
        damage: Option<(Corrupt, EntryId)>,
        options: &ResumeOptions,
    ) -> Result<Resume> {
        let now = self.clock.now();
        let (revision, context) = (&stored.revision, &stored.context);
        let current = self.current(key, &stored.document)?;
        let reading = &current.reading;
        let checkpoint = &reading.value;
        let dropped = match self.store.beside().newest_dropped(key, NEWEST) {
            // A damaged host does not tell which task its slot belongs to.
            Err(error) if damage.is_some() && recoverable(&error).is_some() => Vec::new(),
            dropped => dropped?,
        };
        let cut = cut_from(&dropped, checkpoint);
        let mut staleness = self.staleness(key, revision, reading, &cut, &options.root)?;
        if damage.is_none() {
            staleness = self.heeding_rollback(key, revision, checkpoint, staleness)?;
        }
        let rule_context = options.context(now, self.judged(key));
        let mut judged = judge(&current.document, reading, &rule_context);
        if let Some(now_for) = &context.place_is_for {
            let own = context.task.as_deref().unwrap_or("another task");
            judged.plan.refuse(format!(
                "The checkpoint belongs to {own}, but its place is now for {now_for}"
            ));
            judged.plan.because(ResumeReason::OfAnotherTask {
                place_is_for: now_for.clone(),
            });
        }
        judged.handoff = self.completed(key, judged.handoff, &dropped, &cut)?;
        if judged.handoff.elsewhere_missing > 0 {
            let (steps, moved_to) = (judged.handoff.done_elsewhere, judged.handoff.moved_to());
            let word = if steps == 1 { "step was" } else { "steps were" };
            let note = format!("{steps} finished {word} {moved_to}");
            judged.plan.note(note);
        }
        let claim = self.claim(key)?;
        let at_work = self.may_be_at_work(
            checkpoint,
            context,
            &judged.handoff,
            claim.as_ref(),
            options,
        );
        if let Some(note) = at_work {
            judged.plan.note(note);
        }
        let (damage, recover_with) = damage.unzip();
        let earlier: Vec<DoneItem> = cut.iter().flat_map(|cut| cut.handoff().done).collect();
        let ledger = self.ledger_state(key);
        let work = (&judged.handoff, &*earlier);
        let proofs = self.proofs_for_plan(key, &options.root, work, &ledger)?;
        let found = Found {
            format: C::FORMAT,
            now,
            context,
            violations: &judged.violations,
            is_partial: reading.is_partial(),
            own: checkpoint
                .message_values(&rule_context.with_unreadable(&judged.handoff.unreadable)),
            handoff: judged.handoff,
            work_has_ids: C::WORK_HAS_IDS,
            foreign: foreign::members(&current.document, checkpoint, reading.left_out()),
            earlier,
            staleness,
            at_work: self.at_work(claim.as_ref(), options),
            held: self.held(claim, options, now),
            ledger,
            proofs,
            newer: super::saving::newer(&current),
            damage,
            recover_with,
        };
        Ok(Resume::new(key, judged.plan, found, options))
    }

    /// The plan if no state can be read.
    fn resume_from_nothing(
        &self,
        key: &Key,
        damage: Corrupt,
        options: &ResumeOptions,
    ) -> Result<Resume> {
        let now = self.clock.now();
        let handoff = Handoff::default();
        let tracking = Tracking::new(&options.root);
        let found = Found {
            format: C::FORMAT,
            now,
            context: &TaskContext::default(),
            violations: &[],
            is_partial: false,
            work_has_ids: C::WORK_HAS_IDS,
            own: serde_json::Value::Null,
            foreign: Vec::new(),
            earlier: Vec::new(),
            staleness: Staleness::judge([], &Basis::new(None, Some(now)), &tracking).of_a_part(),
            held: self.held(self.claim(key)?, options, now),
            at_work: None,
            ledger: self.ledger_state(key),
            proofs: Proofs::default(),
            newer: None,
            damage: Some(damage),
            recover_with: None,
            handoff: handoff.clone(),
        };
        Ok(Resume::new(key, ResumePlan::of(&handoff), found, options))
    }

    /// The state of a task's ledger. An unreadable ledger does not prevent a plan.
    fn ledger_state(&self, key: &Key) -> Result<LedgerState, String> {
        let state = self.ledger(key, String::new()).state();
        state.map_err(|error| error.to_string())
    }

    /// The last claim on a key, in a store with claims.
    fn claim(&self, key: &Key) -> Result<Option<Claim>> {
        match self.store.claims() {
            Some(claims) => claims.claimed(key),
            None => Ok(None),
        }
    }

    /// The claim that prevents the asking owner from carrying on. The claim of a gone process of the asking agent does
    /// not: the agent gets it back at once.
    fn held(
        &self,
        claim: Option<Claim>,
        options: &ResumeOptions,
        now: DateTime<Utc>,
    ) -> Option<Claim> {
        claim.filter(|claim| {
            let is_left = || {
                let agent = claim.agent.as_deref().filter(|agent| asks(options, agent));
                agent.is_some_and(|agent| claim.is_left_by_dead(agent))
            };
            !options.ignores_claims
                && claim.stands(now)
                && !self.is_askers(claim, options)
                && !is_left()
        })
    }

    /// The claim whose owner may be at work. If the caller ignores claims, only its own claim counts.
    fn at_work(&self, claim: Option<&Claim>, options: &ResumeOptions) -> Option<Claim> {
        let counts = |claim: &&Claim| !options.ignores_claims || self.is_askers(claim, options);
        claim.filter(counts).cloned()
    }

    fn is_askers(&self, claim: &Claim, options: &ResumeOptions) -> bool {
        self.fence == Some(claim.fence) || options.asker.as_deref() == Some(&claim.owner)
    }

    /// A note about an agent that reported moments ago although no agent has claimed the task: nothing prevents
    /// two agents from carrying on at once.
    fn may_be_at_work(
        &self,
        checkpoint: &C,
        context: &TaskContext,
        handoff: &Handoff,
        claim: Option<&Claim>,
        options: &ResumeOptions,
    ) -> Option<String> {
        let now = self.clock.now();
        // A released claim states that its owner stopped; a valid one keeps others out.
        let is_settled = claim.is_some_and(|claim| claim.released || claim.stands(now));
        if options.ignores_claims || is_settled || self.store.claims().is_none() {
            return None;
        }
        let pulse = checkpoint.pulse();
        let pulse = pulse.with_heartbeat(context.heartbeat.clone());
        let Liveness::Active { last, .. } = Liveness::judge(&pulse, &C::thresholds(), now) else {
            return None;
        };
        let agent = handoff.agent.as_deref()?;
        if last.age >= MOMENTS || asks(options, agent) {
            return None;
        }
        Some(format!(
            "{} reported {} s ago, and no agent has claimed the task: if that agent still works on it, two agents \
             would work at once; claim the task before you continue",
            shown::line(agent),
            last.age.num_seconds().max(0),
        ))
    }
}

/// Whether this agent asks, in any session.
fn asks(options: &ResumeOptions, agent: &str) -> bool {
    let asker = options
        .asker
        .as_deref()
        .and_then(|asker| asker.strip_prefix(agent));
    asker.is_some_and(|session| session.is_empty() || session.starts_with(','))
}

/// The damage of a document that a recovery would replace; `None` if it is only nested too deeply, which a
/// recovery leaves.
fn recoverable(error: &Error) -> Option<Corrupt> {
    match error.kind() {
        ErrorKind::Corrupt(corrupt) if corrupt.code != CorruptCode::TooDeep => {
            Some(corrupt.clone())
        }
        _ => None,
    }
}
