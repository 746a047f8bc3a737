//! How a task goes to another agent.

use super::{Recorded, Recorder};
use crate::checkpoint::{Checkpoint, Operation, Result};
use crate::resume::Resume;

/// A task that was given to another agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HandedOver {
    /// What was saved.
    pub recorded: Recorded,
    /// How the other agent goes on: the plan, and with the feature `template` the prompt.
    pub resume: Resume,
}

impl<C: Checkpoint> Recorder<C> {
    /// Gives the task to another agent: a full checkpoint, with this agent in the chain of those that worked on
    /// it where the format has one. The claim ends, and every later call is refused.
    ///
    /// # Errors
    ///
    /// As every call; after the checkpoint was saved, those of
    /// [`Checkpoints::resume`](crate::Checkpoints::resume) and of releasing the claim, after which the task is the
    /// other agent's all the same, and [`plan`](Recorder::plan) gives the prompt.
    pub fn reassign(&self, to: &str) -> Result<HandedOver> {
        let mut state = self.state();
        let operation = Operation::Reassign { to: to.to_owned() };
        let recorded = self.change_in(&mut state, None, &mut |checkpoint, context| {
            checkpoint.apply(&operation, context)
        })?;
        state.given_to = Some(to.to_owned());
        let mut resume = self.plan()?;
        if resume.handoff.previous_agents.is_empty() {
            // The format has no chain and names the other agent already, which did none of the work.
            resume.handoff.agent = Some(self.options.owner.agent.clone());
        }
        state.hold.release(self.checkpoints.store(), &self.key)?;
        Ok(HandedOver { recorded, resume })
    }
}
