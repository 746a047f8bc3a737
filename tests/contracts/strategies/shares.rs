//! How often `any` gives the values that its documentation names.

use agent_checkpoint::formats::OpenEnum;
use agent_checkpoint::formats::agent_session::{AgentStatus, AgentType};
use agent_checkpoint::formats::build_pipeline::BuildStatus;
use agent_checkpoint::formats::sitebuilder::TaskStatus;
use agent_checkpoint::formats::task::Phase;
use agent_checkpoint::strategies::any_spelling;
use agent_checkpoint::{Key, Precision, Revision, Status, Timestamp};
use proptest::arbitrary::{Arbitrary, any};
use proptest::strategy::Strategy;

use super::{
    AgentCheckpoint, BuildCheckpoint, BuilderState, PipelineState, SitebuilderCheckpoint,
    StoryCheckpoint, TaskCheckpoint, assert_share, sample,
};

const OF: usize = 300;

struct Shares<T>(Vec<T>);

fn of<T: Arbitrary>() -> Shares<T> {
    by(any::<T>())
}

fn by<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> Shares<T> {
    Shares(sample(&strategy, OF))
}

impl<T> Shares<T> {
    fn has(&self, what: &str, expected: f64, is: impl Fn(&T) -> bool) -> &Self {
        let count = self.0.iter().filter(|value| is(value)).count();
        assert_share(what, count, self.0.len(), expected);
        self
    }
}

#[test]
fn of_the_vocabulary() {
    of::<Timestamp>()
        .has("whole seconds", 0.66, |stamp| {
            stamp.precision() == Some(Precision::SECONDS)
        })
        .has("times", 1.0, |stamp| stamp.time().is_some());
    of::<Key>()
        .has("ids", 0.5, |key| {
            key.as_str()
                .starts_with(|letter: char| letter.is_ascii_uppercase())
        })
        .has("slots", 0.25, |key| key.as_str().starts_with("adhoc:"))
        .has("paths", 0.125, |key| key.as_str().starts_with(['.', '/']));
    of::<Status>().has("blocked", 0.17, |status| *status == Status::Blocked);
    of::<Phase>().has("known", 1.0, OpenEnum::is_known);
    of::<Revision>().has("read back", 1.0, |revision| {
        revision.to_string().parse::<Revision>().unwrap() == *revision
    });
    by(any_spelling::<Phase>()).has("known", 0.75, OpenEnum::is_known);
}

#[test]
fn of_tasks_and_host_files() {
    of::<TaskCheckpoint>()
        .has("a current step", 0.5, |task| task.current_step.is_some())
        .has("blockers", 0.2, |task| !task.blockers.is_empty())
        .has("a verification", 0.5, |task| task.verification.is_some());
    of::<BuilderState>()
        .has("requirements", 0.75, |host| host.active_prd.is_some())
        .has("the later place", 0.25, |host| host.active_work.is_some())
        .has("top level", 0.2, |host| host.checkpoint.is_some());
}

#[test]
fn of_agents_and_sitebuilders() {
    of::<AgentCheckpoint>()
        .has("primary", 0.2, |agent| {
            agent.agent_type == Some(AgentType::Primary)
        })
        .has("in progress", 0.4, |agent| {
            agent.status == Some(AgentStatus::InProgress)
        })
        .has("blocked", 0.2, |agent| {
            agent.status == Some(AgentStatus::Blocked)
        })
        .has("took over", 0.25, |agent| agent.previous_agent.is_some())
        .has("a current step", 0.75, |agent| agent.current_step.is_some());
    of::<SitebuilderCheckpoint>()
        .has("blocked", 0.25, |task| {
            task.status == Some(TaskStatus::Blocked)
        })
        .has("complete", 0.25, |task| {
            task.status == Some(TaskStatus::Complete)
        })
        .has("a heartbeat", 0.5, |task| task.heartbeat.is_some());
}

#[test]
fn of_stories_pipelines_and_builds() {
    of::<StoryCheckpoint>()
        .has("stage 2", 0.25, |story| story.stage_number() == Some(2))
        .has("the later revision", 0.25, |story| story.story_id.is_none());
    of::<PipelineState>().has("complete or not", 0.5, |state| state.complete.is_some());
    of::<BuildCheckpoint>()
        .has("failed", 0.2, |build| {
            build.status == Some(BuildStatus::Failed)
        })
        .has("the later revision", 0.5, |build: &BuildCheckpoint| {
            build.updated_at.is_some()
        })
        .has("proof A", 0.26, |build| build.gate_a_fidelity.is_some());
}
