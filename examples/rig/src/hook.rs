//! The hook that records an agent of rig in checkpoints.

use std::sync::atomic::{AtomicUsize, Ordering};

use agent_checkpoint::StepDone;
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::recorder::AsyncRecorder;
use rig_agent::agent::{
    AgentHook, CompletionCallAction, CompletionCallEvent, DispatchAction, DispatchEvent,
    HookContext, ModelTurnAction, ModelTurnFinished, OutcomeAction, OutcomeEvent, RunSettled,
    RunStart, RunStartAction,
};
use rig_core::effect::EffectKind;
use rig_core::error::{ErrorKind, ErrorReport};

use crate::tool::PerformStep;

/// Reports each tool call as a step: as begun before the call, as done when it succeeded. A report that is refused
/// because another agent has the task ends the run.
pub(crate) struct Checkpointing {
    recorder: AsyncRecorder<TaskCheckpoint>,
    boundaries: Boundaries,
}

impl Checkpointing {
    pub(crate) fn new(recorder: AsyncRecorder<TaskCheckpoint>, dies_at: usize) -> Checkpointing {
        let boundaries = Boundaries {
            dies_at,
            ..Boundaries::default()
        };
        Checkpointing {
            recorder,
            boundaries,
        }
    }
}

impl AgentHook for Checkpointing {
    async fn on_run_start(&self, _: &HookContext, _: RunStart<'_>) -> RunStartAction {
        self.boundaries.pass();
        RunStartAction::Continue
    }

    async fn on_completion_call(
        &self,
        _: &HookContext,
        _: CompletionCallEvent<'_>,
    ) -> CompletionCallAction {
        self.boundaries.pass();
        CompletionCallAction::Continue
    }

    async fn on_model_turn_finished(
        &self,
        _: &HookContext,
        _: ModelTurnFinished<'_>,
    ) -> ModelTurnAction {
        self.boundaries.pass();
        ModelTurnAction::Continue
    }

    async fn on_dispatch(&self, _: &HookContext, event: DispatchEvent<'_>) -> DispatchAction {
        self.boundaries.pass();
        let EffectKind::ToolCall { args, .. } = event.kind else {
            return DispatchAction::Proceed;
        };
        let step = PerformStep::step_in(args);
        let saved = self
            .recorder
            .call(move |recorder| recorder.step_started(&step));
        let saved = saved.await;
        self.boundaries.pass();
        match saved {
            Ok(_) => DispatchAction::Proceed,
            Err(error) => DispatchAction::stop(error.to_string()),
        }
    }

    async fn on_outcome(&self, _: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        self.boundaries.pass();
        let (Some(result), Some(args)) = (event.tool_result(), event.tool_args()) else {
            return OutcomeAction::Proceed;
        };
        if !result.is_success() {
            return OutcomeAction::Proceed;
        }
        let done = StepDone::new(PerformStep::step_in(args));
        let saved = self
            .recorder
            .call(move |recorder| recorder.step_done(&done));
        let saved = saved.await;
        self.boundaries.pass();
        match saved {
            Ok(_) => OutcomeAction::Proceed,
            Err(error) => {
                let report = ErrorReport::new(ErrorKind::Cancelled, error.to_string());
                OutcomeAction::Replace(Err(report))
            }
        }
    }

    async fn on_run_settled(&self, _: &HookContext, _: RunSettled<'_>) {
        self.boundaries.pass();
    }
}

/// Counts the entries and exits of the hook, and makes the process die at one of them.
#[derive(Default)]
struct Boundaries {
    passed: AtomicUsize,
    dies_at: usize,
}

impl Boundaries {
    fn pass(&self) {
        if self.passed.fetch_add(1, Ordering::Relaxed) == self.dies_at {
            std::process::abort();
        }
    }
}
