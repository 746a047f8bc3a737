//! How long a pipeline and its stages take.

use chrono::{DateTime, TimeDelta, Utc};

use super::{PipelineState, StageTimes};
use crate::checkpoint::Timestamp;

impl StageTimes {
    /// When a stage began.
    #[must_use]
    pub fn start(&self, stage: u8) -> Option<&Timestamp> {
        match stage {
            0 => self.stage_0_start.as_ref(),
            1 => self.stage_1_start.as_ref(),
            2 => self.stage_2_start.as_ref(),
            3 => self.stage_3_start.as_ref(),
            _ => None,
        }
    }

    /// When a stage ended.
    #[must_use]
    pub fn end(&self, stage: u8) -> Option<&Timestamp> {
        match stage {
            0 => self.stage_0_end.as_ref(),
            1 => self.stage_1_end.as_ref(),
            2 => self.stage_2_end.as_ref(),
            3 => self.stage_3_end.as_ref(),
            _ => None,
        }
    }

    pub(super) fn begin(&mut self, stage: u8, at: Timestamp) {
        let (start, end) = match stage {
            0 => (&mut self.stage_0_start, &mut self.stage_0_end),
            1 => (&mut self.stage_1_start, &mut self.stage_1_end),
            2 => (&mut self.stage_2_start, &mut self.stage_2_end),
            _ => (&mut self.stage_3_start, &mut self.stage_3_end),
        };
        // A stage that begins again counts from its first start; it has no end until it ends.
        start.get_or_insert(at);
        *end = None;
    }

    pub(super) fn finish(&mut self, stage: u8, at: Timestamp) {
        let end = match stage {
            0 => &mut self.stage_0_end,
            1 => &mut self.stage_1_end,
            2 => &mut self.stage_2_end,
            _ => &mut self.stage_3_end,
        };
        *end = Some(at);
    }

    /// How long a stage took, or takes until now; `None` where its start is not known.
    #[must_use]
    pub fn duration(&self, stage: u8, now: DateTime<Utc>) -> Option<TimeDelta> {
        let start = self.start(stage)?.time()?.to_utc();
        let end = match self.end(stage) {
            Some(end) => end.time()?.to_utc(),
            None => now,
        };
        Some((end - start).max(TimeDelta::zero()))
    }
}

impl PipelineState {
    /// How long the pipeline has run.
    #[must_use]
    pub fn elapsed(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        let start = self.pipeline_start_time.as_ref()?.time()?.to_utc();
        Some((now - start).max(TimeDelta::zero()))
    }
}
