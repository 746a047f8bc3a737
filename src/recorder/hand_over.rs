//! How a task is handed over to another agent.

use super::{Recorded, Recorder};
use crate::checkpoint::{Checkpoint, Operation, Result};
use crate::resume::Resume;

/// The result of handing a task over to another agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HandedOver {
    /// The checkpoint that was saved.
    pub recorded: Recorded,
    /// How the other agent carries on: the plan, and with the feature `template` the prompt.
    pub resume: Resume,
}

impl<C: Checkpoint> Recorder<C> {
    /// Hands the task over to another agent. It saves a full checkpoint, which lists this agent among the
    /// previous ones if the format has such a list. The claim ends, and every later call is refused.
    ///
    /// # Errors
    ///
    /// As every call. After the checkpoint was saved, those of
    /// [`Checkpoints::resume`](crate::Checkpoints::resume) and of releasing the claim: the task belongs to the
    /// other agent even then, and [`plan`](Recorder::plan) gives the prompt.
    pub fn reassign(&self, to: &str) -> Result<HandedOver> {
        let mut state = self.state();
        let operation = Operation::Reassign { to: to.to_owned() };
        let recorded = self.change_in(&mut state, None, &mut |checkpoint, context| {
            checkpoint.apply(&operation, context)
        })?;
        state.given_to = Some(to.to_owned());
        let mut resume = self.plan()?;
        if resume.handoff.previous_agents.is_empty() {
            // The format has no list of previous agents, and already names the other agent, which did none of
            // the work.
            resume.handoff.agent = Some(self.options.owner.agent.clone());
        }
        state.hold.release(self.checkpoints.store(), &self.key)?;
        Ok(HandedOver { recorded, resume })
    }
}
