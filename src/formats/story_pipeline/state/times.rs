//! How long a pipeline and its stages take.

use chrono::{DateTime, TimeDelta, Utc};

use super::{PipelineState, StageTimes};
use crate::checkpoint::Timestamp;

impl StageTimes {
    /// When a stage began and ended; of another number, the last stage.
    fn of(&self, stage: u8) -> (&Option<Timestamp>, &Option<Timestamp>) {
        match stage {
            0 => (&self.stage_0_start, &self.stage_0_end),
            1 => (&self.stage_1_start, &self.stage_1_end),
            2 => (&self.stage_2_start, &self.stage_2_end),
            _ => (&self.stage_3_start, &self.stage_3_end),
        }
    }

    fn of_mut(&mut self, stage: u8) -> (&mut Option<Timestamp>, &mut Option<Timestamp>) {
        match stage {
            0 => (&mut self.stage_0_start, &mut self.stage_0_end),
            1 => (&mut self.stage_1_start, &mut self.stage_1_end),
            2 => (&mut self.stage_2_start, &mut self.stage_2_end),
            _ => (&mut self.stage_3_start, &mut self.stage_3_end),
        }
    }

    /// When a stage began.
    pub(super) fn start(&self, stage: u8) -> Option<&Timestamp> {
        self.of(stage).0.as_ref()
    }

    /// When a stage ended.
    pub(super) fn end(&self, stage: u8) -> Option<&Timestamp> {
        self.of(stage).1.as_ref()
    }

    pub(super) fn begin(&mut self, stage: u8, at: Timestamp) {
        let (start, end) = self.of_mut(stage);
        // A stage that begins again counts from its first start; it has no end until it ends.
        start.get_or_insert(at);
        *end = None;
    }

    pub(super) fn finish(&mut self, stage: u8, at: Timestamp) {
        *self.of_mut(stage).1 = Some(at);
    }

    /// How long a stage, from 0 to 3, took, or takes until now; `None` where its start is not known.
    #[must_use]
    pub fn duration(&self, stage: u8, now: DateTime<Utc>) -> Option<TimeDelta> {
        let until = match self.end(stage) {
            Some(end) => end.time()?.to_utc(),
            None => now,
        };
        between(self.start(stage), until)
    }
}

impl PipelineState {
    /// How long the pipeline has run.
    pub(super) fn elapsed(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        between(self.pipeline_start_time.as_ref(), now)
    }
}

fn between(start: Option<&Timestamp>, until: DateTime<Utc>) -> Option<TimeDelta> {
    let start = start?.time()?.to_utc();
    Some((until - start).max(TimeDelta::zero()))
}
