//! The operations of the lead on the pipeline's state.

use chrono::{DateTime, Utc};

use super::{PipelineState, StoryState};
use crate::checkpoint::{Checkpoint, Error, Result, Timestamp, operations};
use crate::formats::story_pipeline::guards::{MAX_CRASHES, NextStep};
use crate::formats::story_pipeline::messages::{pipeline_name, retry_name, worker_name};
use crate::formats::story_pipeline::{Number, StoryCheckpoint, Verdict, must_be_story_id};

/// The next step after a story's worker crashed and could not be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AfterCrash {
    /// A new worker is started.
    Respawn {
        /// The name of the new worker.
        name: String,
        /// The number of the restart, from 1.
        attempt: u64,
    },
    /// The story is paused.
    Pause,
}

impl PipelineState {
    /// The state of a pipeline that begins with these stories, in order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when an id is no story id, or a story is named twice.
    pub fn begin(
        stories: impl IntoIterator<Item = impl Into<String>>,
        now: DateTime<Utc>,
    ) -> Result<Self> {
        let mut state = PipelineState {
            pipeline_start_time: Some(Timestamp::like(None, now)),
            ..PipelineState::default()
        };
        for story in stories {
            let story = story.into();
            must_be_story_id(&story)?;
            if state.priority_queue_ids.contains(&story) {
                return Err(Error::refused(format!("the story {story} is named twice")));
            }
            state.priority_queue_ids.push(story);
        }
        state.stamp(now);
        Ok(state)
    }

    /// Sets absent values that follow from the rest. Values that cannot be derived stay absent.
    pub(super) fn derive_absent(&mut self) {
        self.complete.get_or_insert(false);
        let workers = self.worker_map.len() as u64;
        self.active_workers.get_or_insert_with(|| count(workers));
        let open = |state: &&StoryState| !matches!(state, StoryState::Done | StoryState::Paused);
        let begun = self.story_state.values().filter(open).count();
        let is_known = |story: &&String| self.story_state.contains_key(*story);
        let waiting = self.priority_queue_ids.iter();
        let waiting = waiting.filter(|story| !is_known(story)).count();
        self.stories_remaining
            .get_or_insert_with(|| count((begun + waiting) as u64));
        if self.pipeline_start_time.is_none() {
            let times = self.stage_timestamps.values();
            let starts = times.flat_map(|times| (0..=3).filter_map(|stage| times.start(stage)));
            let first = starts.filter(|start| start.time().is_some());
            self.pipeline_start_time = first.min_by_key(|start| start.time()).cloned();
        }
        if self.team_name.is_none() {
            let began = self.pipeline_start_time.as_ref();
            let began = began.and_then(|stamp| stamp.time());
            self.team_name = began.map(|time| pipeline_name(time.date_naive()));
        }
    }

    /// The waiting stories whose prerequisites are all done, in order.
    #[must_use]
    pub fn ready(&self) -> Vec<&str> {
        let is_done = |story: &String| self.story_state.get(story) == Some(&StoryState::Done);
        self.priority_queue_ids
            .iter()
            .filter(|story| {
                self.depends_on
                    .get(*story)
                    .is_none_or(|needed| needed.iter().all(is_done))
            })
            .map(String::as_str)
            .collect()
    }

    /// Begins a waiting story with this stage; returns the name of its worker.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the story is not planned or has begun, when a
    /// prerequisite is not done, and when there is no such stage.
    pub fn begin_story(&mut self, story: &str, stage: u8, now: DateTime<Utc>) -> Result<String> {
        match self.story_state.get(story) {
            Some(StoryState::Queued) => {}
            Some(from) => {
                return Err(Error::refused(format!(
                    "{story} is {from}; only a story that is QUEUED begins"
                )));
            }
            None if self
                .priority_queue_ids
                .iter()
                .any(|waiting| waiting == story) => {}
            None => {
                return Err(Error::refused(format!(
                    "{story} is no story of this pipeline; add it to priority_queue_ids first"
                )));
            }
        }
        let Some(state) = StoryState::of_stage(stage) else {
            return Err(Error::refused(format!("there is no stage {stage}")));
        };
        let needed = self.depends_on.get(story).into_iter().flatten();
        let open: Vec<&str> = needed
            .filter(|id| self.story_state.get(*id) != Some(&StoryState::Done))
            .map(String::as_str)
            .collect();
        if !open.is_empty() {
            return Err(Error::refused(format!(
                "{story} needs these stories first: {}",
                open.join(", ")
            )));
        }
        self.priority_queue_ids.retain(|waiting| waiting != story);
        self.story_state.insert(story.to_owned(), state);
        for counts in [
            &mut self.quality_cycles,
            &mut self.validation_retries,
            &mut self.crash_count,
        ] {
            counts.entry(story.to_owned()).or_default();
        }
        let results = self.story_results.entry(story.to_owned()).or_default();
        for skipped in 0..stage {
            if let Some(result) = results.of_stage(skipped) {
                result.get_or_insert_with(|| "skip".to_owned());
            }
        }
        Ok(self.enter(story, stage, now))
    }

    /// Records the end of a stage from the worker's checkpoint, moves the story on, and returns what follows.
    ///
    /// Counters, readiness, and the times and results of stages are updated. When the story has to wait, nothing is
    /// changed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the checkpoint belongs to another story, or its stage is
    /// not the one that the pipeline has the story in.
    pub fn record(
        &mut self,
        story: &str,
        checkpoint: &StoryCheckpoint,
        now: DateTime<Utc>,
    ) -> Result<NextStep> {
        let Some(stage) = checkpoint.stage_number() else {
            return Err(Error::refused("the checkpoint has no stage"));
        };
        if checkpoint.story().is_some_and(|id| id != story) {
            return Err(Error::refused(format!("this is no checkpoint of {story}")));
        }
        let at = self.story_state.get(story);
        if at.and_then(StoryState::stage) != Some(stage) {
            let at = at.map_or("unknown", StoryState::as_str);
            return Err(Error::refused(format!(
                "the checkpoint of {story} is of stage {stage}, but the pipeline has it as {at}; restore its \
                 checkpoint of that stage and record it, or set its story_state to where the story is"
            )));
        }
        let next = checkpoint.next_step(self.counters(story));
        if matches!(next, NextStep::Wait { .. }) {
            return Ok(next);
        }
        let stamp = self.new_stamp(now);
        let times = self.stage_timestamps.entry(story.to_owned()).or_default();
        times.finish(stage, stamp);
        let results = self.story_results.entry(story.to_owned()).or_default();
        if let Some(result) = results.of_stage(stage) {
            *result = Some(result_of(checkpoint, stage));
        }
        if checkpoint.verdict == Some(Verdict::Go)
            && stage == 1
            && let Some(readiness) = checkpoint.readiness
        {
            self.readiness_scores.insert(story.to_owned(), readiness);
        }
        match &next {
            NextStep::Enter { stage } => {
                self.move_to(story, *stage, now);
            }
            NextStep::Retry { attempt, .. } => {
                let retries = &mut self.validation_retries;
                retries.insert(story.to_owned(), count(*attempt));
                self.move_to(story, 1, now);
            }
            NextStep::Rework { cycle, .. } => {
                self.quality_cycles.insert(story.to_owned(), count(*cycle));
                self.move_to(story, 2, now);
            }
            NextStep::Finish => self.leave(story, StoryState::Done),
            NextStep::Pause { .. } => self.leave(story, StoryState::Paused),
            NextStep::Wait { .. } => {}
        }
        Ok(next)
    }

    /// Records that a story's worker crashed and could not be resumed. The first time a new worker is started; after
    /// that the story is paused.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) when the story is in no stage.
    pub fn crashed(&mut self, story: &str) -> Result<AfterCrash> {
        let Some(stage) = self.story_state.get(story).and_then(StoryState::stage) else {
            return Err(Error::refused(format!("{story} is in no stage")));
        };
        let crashes = self.counters(story).crashes;
        if crashes >= MAX_CRASHES.into() {
            self.leave(story, StoryState::Paused);
            return Ok(AfterCrash::Pause);
        }
        let (name, attempt) = (retry_name(story, stage), crashes + 1);
        self.crash_count.insert(story.to_owned(), count(attempt));
        self.worker_map.insert(story.to_owned(), name.clone());
        Ok(AfterCrash::Respawn { name, attempt })
    }

    /// Marks the pipeline as complete, before it is cleaned up. Refused while a story is neither done nor paused,
    /// unless forced.
    pub(super) fn finish(&mut self, force: bool) -> Result<()> {
        let is_open = |state: &StoryState| !matches!(state, StoryState::Done | StoryState::Paused);
        let begun = self.story_state.iter().filter(|(_, state)| is_open(state));
        let begun = begun.map(|(story, _)| story.as_str());
        let open: Vec<&str> = begun
            .chain(self.priority_queue_ids.iter().map(String::as_str))
            .collect();
        if !open.is_empty() && !force {
            return Err(Error::refused(format!(
                "the pipeline is not complete; these stories are neither DONE nor PAUSED: {}",
                open.join(", ")
            )));
        }
        self.complete = Some(true);
        Ok(())
    }

    fn new_stamp(&self, now: DateTime<Utc>) -> Timestamp {
        Timestamp::like(self.last_check.as_ref(), now)
    }

    fn enter(&mut self, story: &str, stage: u8, now: DateTime<Utc>) -> String {
        let stamp = self.new_stamp(now);
        let times = self.stage_timestamps.entry(story.to_owned()).or_default();
        times.begin(stage, stamp);
        let worker = worker_name(story, stage);
        let before = self.worker_map.insert(story.to_owned(), worker.clone());
        if before.is_none() {
            self.change_workers(1.0);
        }
        worker
    }

    fn move_to(&mut self, story: &str, stage: u8, now: DateTime<Utc>) {
        if let Some(state) = StoryState::of_stage(stage) {
            self.story_state.insert(story.to_owned(), state);
            self.enter(story, stage, now);
        }
    }

    fn leave(&mut self, story: &str, state: StoryState) {
        self.story_state.insert(story.to_owned(), state);
        if self.worker_map.remove(story).is_some() {
            self.change_workers(-1.0);
        }
        self.stories_remaining = less_or_more(self.stories_remaining, -1.0);
    }

    fn change_workers(&mut self, by: f64) {
        self.active_workers = less_or_more(self.active_workers, by);
    }
}

/// Changes a count, not below zero; an absent count stays absent.
fn less_or_more(number: Option<Number>, by: f64) -> Option<Number> {
    number.map(|number| Number::from((number.get() + by).max(0.0)))
}

fn count(number: u64) -> Number {
    Number::from(number as f64)
}

fn result_of(checkpoint: &StoryCheckpoint, stage: u8) -> String {
    let verdict = checkpoint.verdict.as_ref();
    match (stage, verdict) {
        (1 | 3, Some(verdict)) => verdict.to_string(),
        _ => "Done".to_owned(),
    }
}

operations! {
    pub(super) fn apply(state: &mut PipelineState, context) takes OPERATIONS {
        Heartbeat => state.stamp(context.now),
        Complete => {
            if !context.force {
                context.nothing_hidden("the pipeline is not complete")?;
            }
            state.finish(context.force)?;
        },
    }
}
