//! The two revisions of the protocol: the names of each, and how either is read and written.

use chrono::{DateTime, Utc};

use super::guards::{Counters, NextStep};
use super::{Number, StoryCheckpoint};
use crate::checkpoint::{Inspection, Timestamp};

/// The revision of the protocol that a checkpoint follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// The original one: `storyId`, one `timestamp`, and the worker's `agentId`.
    CamelCase,
    /// The later one: `story_id`, which may be absent, `started_at` and `completed_at`, and no agent.
    SnakeCase,
}

/// The name of a value in each revision.
#[derive(Clone, Copy)]
pub(super) struct Name {
    pub(super) camel: &'static str,
    pub(super) snake: &'static str,
}

impl Name {
    pub(super) fn of(self, spelling: Spelling) -> &'static str {
        match spelling {
            Spelling::CamelCase => self.camel,
            Spelling::SnakeCase => self.snake,
        }
    }

    /// The name under which a value is read: the original one if it is present, else the later one if it is, else the
    /// one of the file's revision.
    pub(super) fn read_from(self, spelling: Spelling, camel: bool, snake: bool) -> &'static str {
        match (camel, snake) {
            (true, _) => self.camel,
            (false, true) => self.snake,
            (false, false) => self.of(spelling),
        }
    }
}

const fn name(camel: &'static str, snake: &'static str) -> Name {
    Name { camel, snake }
}

pub(super) const STORY_ID: Name = name("storyId", "story_id");
pub(super) const COMPLETED: Name = name("tasksCompleted", "tasks_completed");
pub(super) const REMAINING: Name = name("tasksRemaining", "tasks_remaining");
pub(super) const LAST_ACTION: Name = name("lastAction", "last_action");
/// The same in both revisions.
pub(super) const READINESS: Name = name("readiness", "readiness");
pub(super) const PLAN_SCORE: Name = name("planScore", "plan_score");
pub(super) const QUALITY_SCORE: Name = name("qualityScore", "quality_score");

/// The names that only the original revision has.
pub(super) const CAMEL_ONLY: &[&str] = &[
    "storyId",
    "agentId",
    "tasksCompleted",
    "tasksRemaining",
    "lastAction",
    "planScore",
    "qualityScore",
];

/// The names by which the later revision is recognised.
pub(super) const SNAKE_MARKS: &[&str] = &[
    "story_id",
    "tasks_completed",
    "tasks_remaining",
    "last_action",
];

fn spelling_of(mut has: impl FnMut(&str) -> bool) -> Spelling {
    let snake = SNAKE_MARKS.iter().any(|name| has(name));
    if snake && !CAMEL_ONLY.iter().any(|name| has(name)) {
        Spelling::SnakeCase
    } else {
        Spelling::CamelCase
    }
}

/// The revision of a document. Unreadable values count too.
pub(super) fn spelling_in(inspection: &Inspection<'_>) -> Spelling {
    spelling_of(|name| inspection.is_present(name))
}

impl StoryCheckpoint {
    /// The revision that the checkpoint follows: the later one if it has one of its names and none of the original's.
    pub(super) fn spelling(&self) -> Spelling {
        spelling_of(|name| match name {
            "storyId" => self.story_id.is_some(),
            "agentId" => self.agent_id.is_some(),
            "tasksCompleted" => self.tasks_completed.is_some(),
            "tasksRemaining" => self.tasks_remaining.is_some(),
            "lastAction" => self.last_action.is_some(),
            "planScore" => self.plan_score.is_some(),
            "qualityScore" => self.quality_score.is_some(),
            "story_id" => self.snake_story_id.is_some(),
            "tasks_completed" => self.snake_tasks_completed.is_some(),
            "tasks_remaining" => self.snake_tasks_remaining.is_some(),
            "last_action" => self.snake_last_action.is_some(),
            _ => false,
        })
    }

    /// The story's id, in either spelling.
    #[must_use]
    pub fn story(&self) -> Option<&str> {
        self.story_id.as_deref().or(self.snake_story_id.as_deref())
    }

    /// The stage, if it is one of the four.
    #[must_use]
    pub fn stage_number(&self) -> Option<u8> {
        let stage = self.stage?.whole()?;
        u8::try_from(stage).ok().filter(|stage| *stage <= 3)
    }

    /// The ids of the tasks that are finished, in either spelling.
    #[must_use]
    pub fn completed(&self) -> &[String] {
        let lists = self.tasks_completed.as_ref();
        lists
            .or(self.snake_tasks_completed.as_ref())
            .map_or(&[], Vec::as_slice)
    }

    /// The ids of the tasks that are left, in either spelling.
    #[must_use]
    pub fn remaining(&self) -> &[String] {
        let lists = self.tasks_remaining.as_ref();
        lists
            .or(self.snake_tasks_remaining.as_ref())
            .map_or(&[], Vec::as_slice)
    }

    /// The last action, in either spelling.
    #[must_use]
    pub fn action(&self) -> Option<&str> {
        let action = self.last_action.as_deref();
        action.or(self.snake_last_action.as_deref())
    }

    /// The score of the task plan, 0 to 4, in either spelling.
    #[must_use]
    pub fn plan_score(&self) -> Option<Number> {
        self.plan_score.or(self.snake_plan_score)
    }

    /// The score of the quality gate, 0 to 100, in either spelling.
    #[must_use]
    pub fn quality_score(&self) -> Option<Number> {
        self.quality_score.or(self.snake_quality_score)
    }

    /// When the checkpoint was last written: `timestamp` in the original revision; in the later one the end of the
    /// stage, or its start if there is no end.
    pub(super) fn written_at(&self) -> Option<&Timestamp> {
        let (own, other) = match self.spelling() {
            Spelling::CamelCase => (self.timestamp.as_ref(), self.completed_at.as_ref()),
            Spelling::SnakeCase => (self.completed_at.as_ref(), self.timestamp.as_ref()),
        };
        own.or(other).or(self.started_at.as_ref())
    }

    /// Sets the stamp of a write. In the later revision `completed_at` means that the stage is done, so it is set only
    /// then or if the file has it already. Otherwise the write sets the `timestamp` of the original revision.
    pub(super) fn stamp_at(&mut self, now: DateTime<Utc>) {
        let stamp = Timestamp::like(self.written_at(), now);
        let is_later = self.spelling() == Spelling::SnakeCase;
        let completes = is_later && (self.is_stage_done() || self.completed_at.is_some());
        if completes {
            self.completed_at = Some(stamp.clone());
        }
        if !completes || self.timestamp.is_some() {
            self.timestamp = Some(stamp.clone());
        }
        if is_later && self.completed_at.is_none() {
            self.started_at.get_or_insert(stamp);
        }
    }

    /// Whether the work of the stage is done.
    fn is_stage_done(&self) -> bool {
        match self.stage_number() {
            Some(0) => self.plan_score().is_some() && !self.remaining().is_empty(),
            Some(2) => matches!(self.next_step(Counters::default()), NextStep::Enter { .. }),
            Some(_) => self.verdict.is_some(),
            None => false,
        }
    }
}

/// Declares setters. A value is set under the name where it is read; a new one under the name of the file's revision.
macro_rules! setters {
    ($($set:ident($value:ty): $camel:ident or $snake:ident;)+) => {
        impl StoryCheckpoint {
            $(pub(super) fn $set(&mut self, value: $value) {
                let is_later = self.spelling() == Spelling::SnakeCase;
                if self.$camel.is_none() && (self.$snake.is_some() || is_later) {
                    self.$snake = Some(value);
                } else {
                    self.$camel = Some(value);
                }
            })+
        }
    };
}

setters! {
    set_completed(Vec<String>): tasks_completed or snake_tasks_completed;
    set_remaining(Vec<String>): tasks_remaining or snake_tasks_remaining;
    set_action(String): last_action or snake_last_action;
    set_plan_score(Number): plan_score or snake_plan_score;
    set_quality_score(Number): quality_score or snake_quality_score;
}
