//! From a document to its row.

use std::path::Path;

use chrono::TimeDelta;

use super::claims::{Beside, Present};
use super::finding::MOST_LISTED;
use super::pairs::Copy;
use super::scan::Scan;
use super::{Finding, Next, Place, Row, RowState, bounded};
use crate::checkpoint::{
    Activity, Checkpoint, FileRole, Handoff, Key, Layout, Pulse, ResumeDecision, ResumeReason,
    Revision, RuleContext, Timestamp, read,
};
use crate::formats::story_pipeline::StoryState;
use crate::formats::{Format, PipelineState, StoryCheckpoint, Surveyed};
use crate::json::{Code, Document};
use crate::liveness::Liveness;
use crate::staleness::Reason;
use crate::store::TaskContext;

/// A checkpoint that was found, before it is judged.
pub(super) struct Found<'d> {
    pub(super) place: Place,
    pub(super) document: &'d Document,
    pub(super) format: Format,
    /// The key that the place gives, where it does.
    pub(super) key: Option<Key>,
    /// The id inside.
    pub(super) id: Option<Key>,
    /// The file name that goes with the id inside, and the one that is there.
    pub(super) names: Option<(String, String)>,
    /// What the surroundings tell.
    pub(super) context: TaskContext,
    /// By what it is known in every checkout of its repository.
    pub(super) copy: Option<Copy>,
}

impl<'d> Found<'d> {
    /// A checkpoint in a file of its own.
    pub(super) fn in_file(
        path: &Path,
        document: &'d Document,
        format: Format,
        layout: Layout,
        role: Option<FileRole>,
    ) -> Found<'d> {
        let id = layout.key_in.and_then(|key_in| key_in(document));
        let name = path.file_name().and_then(|name| name.to_str());
        let usual = id.as_ref().and_then(|id| (layout.file_name)(id).ok());
        let key = match role {
            Some(FileRole::Current(key)) => key,
            _ => None,
        };
        Found {
            place: Place::file(path),
            document,
            format,
            key,
            names: usual.zip(name.map(str::to_owned)),
            id,
            context: TaskContext::default(),
            copy: None,
        }
    }
}

impl Scan<'_> {
    /// Judges a checkpoint and adds its row.
    pub(super) fn checkpoint(
        &mut self,
        found: Found<'_>,
        pipeline: Option<&PipelineState>,
        beside: impl FnOnce(&mut Self, &Key, &Present<'_>) -> Beside,
    ) {
        let pipeline = pipeline.filter(|_| found.format.name == StoryCheckpoint::FORMAT);
        let key = found.key.as_ref();
        let story = pipeline.zip(story_of(&found));
        let state = story
            .as_ref()
            .and_then(|(state, story)| state.story_state.get(story));
        let mut rule_context = RuleContext::none().with_now(self.now);
        // An id inside is compared with the file's name below; the name alone is a key elsewhere.
        rule_context.key = key.filter(|_| found.names.is_none());
        rule_context.story_state = state.map(StoryState::as_str);
        let counted = story.as_ref();
        rule_context.counters = counted.map(|(state, story)| state.counters(story));
        let surveyed = match (found.format.survey)(found.document, &rule_context, self.now) {
            Ok(surveyed) => surveyed,
            Err(error) => {
                let reason = bounded::text(&error.to_string());
                let mut row = Row::new(found.place, RowState::Unreadable { reason });
                row.format = Some(found.format.name);
                self.push(row);
                return;
            }
        };
        let pulse = pulse(
            &surveyed.pulse,
            &found.context,
            story.as_ref().map(|s| s.0),
            state,
        );
        let liveness = Liveness::judge(&pulse, &self.thresholds(&found.format), self.now);
        let owner_key = found.id.clone().or_else(|| found.key.clone());
        let any = || Key::new("checkpoint").ok();
        let revision = Revision::of(found.document.text().as_bytes());
        let present = Present {
            revision: &revision,
            updated_at: surveyed.updated_at.as_ref(),
            format: &found.format,
            handoff: &surveyed.handoff,
        };
        let beside = owner_key
            .or_else(any)
            .map(|key| beside(self, &key, &present));
        let beside = beside.unwrap_or_default();
        let mut row = row(&found, &surveyed, liveness, self);
        row.revision = Some(revision);
        if let Some((state, story)) = &story {
            complete_story(&mut row, state, story, &found, self);
        }
        if !may_be_estimated(&row) {
            row.progress.rest = None;
        }
        row.owner = beside.owner;
        row.done_elsewhere = surveyed.handoff.done_elsewhere;
        row.elsewhere = bounded::said(surveyed.handoff.elsewhere.as_deref());
        row.elsewhere_missing = beside.elsewhere_missing;
        if let Some((task, place_is_for)) = beside.former_task {
            row.task = bounded::said(Some(&task));
            self.findings.push(Finding::OfAnotherTask {
                place: row.place.to_string(),
                task: bounded::text(&task),
                place_is_for: bounded::text(&place_is_for),
            });
        }
        if let Some(Reason::RolledBack {
            later,
            saved,
            last_is_kept,
        }) = beside.rolled_back
        {
            self.findings.push(Finding::RolledBack {
                place: row.place.to_string(),
                later,
                saved,
                last_is_kept,
            });
        }
        self.look(&row, &found, &surveyed, state);
        let is_over = matches!(row.result(), "finished" | "stalled");
        let number = self.push(row);
        self.pairs
            .add(self.project, number, &found, &surveyed.handoff);
        if !is_over {
            let files = &surveyed.exclusive_files;
            self.shared.add(self.project, number, files);
        }
    }

    /// What does not go together in one row.
    fn look(
        &mut self,
        row: &Row,
        found: &Found<'_>,
        surveyed: &Surveyed,
        state: Option<&StoryState>,
    ) {
        let place = || row.place.to_string();
        if let Some((usual, name)) = found.names.as_ref().filter(|(usual, name)| usual != name)
            && let Some(id) = &found.id
        {
            self.findings.push(Finding::KeyMismatch {
                place: place(),
                id: bounded::text(id.as_str()),
                expected: format!(
                    "its file would be {usual}, and this one is {}",
                    bounded::text(name)
                ),
            });
        }
        let mismatch = surveyed
            .violations
            .iter()
            .find(|v| v.code == Code::KEY_MISMATCH);
        if let Some(violation) = mismatch {
            self.findings.push(Finding::KeyMismatch {
                place: place(),
                id: row.task.clone().unwrap_or_default(),
                expected: bounded::text(&violation.message),
            });
        }
        let handoff = &surveyed.handoff;
        if !handoff.unreadable.is_empty() {
            let items: Vec<String> = handoff.unreadable.iter().map(ToString::to_string).collect();
            self.findings.push(Finding::UnreadableItems {
                place: place(),
                items: bounded::texts(&items),
            });
        }
        for reason in &surveyed.plan.reasons {
            if let ResumeReason::DoneAndPlanned { steps } = reason {
                self.findings.push(Finding::DoneAndPlanned {
                    place: place(),
                    steps: bounded::texts(steps),
                });
            }
        }
        let stage = handoff.phase.as_deref();
        if let (Some(state), Some(stage)) = (state, stage)
            && stage_number(stage).is_some_and(|number| !state.fits(number))
        {
            self.findings.push(Finding::StageMismatch {
                place: place(),
                stage: bounded::text(stage),
                state: bounded::text(state.as_str()),
            });
        }
        let is_task = found.format.name != PipelineState::FORMAT;
        if is_task && row.result() == "finished" {
            let left = surveyed.handoff.open_names();
            let percent = row.progress.percent;
            if !left.is_empty() || percent.is_some_and(|percent| percent < 100) {
                self.findings.push(Finding::FinishedWithWorkLeft {
                    place: place(),
                    percent,
                    steps: left.len(),
                    left: left
                        .iter()
                        .take(MOST_LISTED)
                        .map(|it| bounded::text(it))
                        .collect(),
                });
            }
        }
        let Some(owner) = row.owner.as_ref().filter(|owner| !owner.released) else {
            return;
        };
        match (row.result() == "finished", owner.stands) {
            (true, true) => self.findings.push(Finding::FinishedButClaimed {
                place: place(),
                owner: owner.name.clone(),
                until: owner.until,
            }),
            (false, false) => self.findings.push(Finding::ClaimRanOut {
                place: place(),
                owner: owner.name.clone(),
                at: owner.until,
            }),
            _ => {}
        }
    }
}

/// The longest estimate that is one: agents work for hours, and a rest of months comes of a task that lay.
const LONGEST_ESTIMATE: TimeDelta = TimeDelta::days(30);

/// Whether the time that is left can be told: only while work goes on, and not from a pace that is none.
fn may_be_estimated(row: &Row) -> bool {
    let goes_on = matches!(row.result(), "active" | "late" | "waiting");
    goes_on
        && row
            .progress
            .rest
            .is_none_or(|rest| rest <= LONGEST_ESTIMATE)
}

/// The id of the story, from its content or its file.
fn story_of(found: &Found<'_>) -> Option<String> {
    let root = found.document.root();
    let inside = ["storyId", "story_id"];
    let inside = inside
        .iter()
        .find_map(|name| Some(root.get(name)?.as_str()?.into_owned()));
    inside.or_else(|| Some(found.key.as_ref()?.to_string()))
}

fn stage_number(phase: &str) -> Option<u8> {
    phase.strip_prefix("STAGE_")?.parse().ok()
}

/// The pulse with what the surroundings tell: the heartbeat of the host or of the lead, and where the lead
/// says that the story is.
fn pulse(
    own: &Pulse,
    context: &TaskContext,
    pipeline: Option<&PipelineState>,
    state: Option<&StoryState>,
) -> Pulse {
    let lead = pipeline.and_then(|state| state.last_check.clone());
    let mut pulse = own
        .clone()
        .with_heartbeat(context.heartbeat.clone().or(lead));
    match state {
        Some(StoryState::Paused | StoryState::Queued) => pulse.activity = Activity::Waiting,
        Some(StoryState::Done) => pulse.activity = Activity::Finished,
        _ => {}
    }
    bound(&mut pulse.heartbeat);
    bound(&mut pulse.progress);
    if let Activity::Unclear(text) = &pulse.activity {
        pulse.activity = Activity::Unclear(bounded::text(text));
    }
    pulse
}

fn bound(stamp: &mut Option<Timestamp>) {
    *stamp = stamp.as_ref().map(bounded::stamp);
}

fn row(found: &Found<'_>, surveyed: &Surveyed, liveness: Liveness, scan: &Scan<'_>) -> Row {
    let Handoff {
        agent,
        task,
        phase,
        status,
        previous_agents,
        ..
    } = &surveyed.handoff;
    // Nobody is asked to go on with what cannot be gone on with.
    let is_resumable = surveyed.plan.decision < ResumeDecision::Restart;
    let notice = liveness.notice().filter(|_| is_resumable);
    let message = notice.and_then(|notice| (found.format.notice)(found.document, notice, scan.now));
    let task = task.as_deref().or(found.context.task.as_deref());
    let key = found.key.as_ref().map(Key::as_str);
    let newest = previous_agents.len().saturating_sub(MOST_PREVIOUS);
    let state = RowState::Checkpoint { liveness };
    Row {
        format: Some(found.format.name),
        agent: bounded::said(agent.as_deref()),
        previous_agents: previous_agents[newest..]
            .iter()
            .map(|a| bounded::text(a))
            .collect(),
        task: bounded::said(task.or(key)),
        phase: bounded::said(phase.as_deref()),
        status: Some(bounded::text(status.as_str())),
        progress: surveyed.progress,
        updated_at: surveyed.updated_at.as_ref().map(bounded::stamp),
        next: Some(Next::of(&surveyed.plan)),
        violations: surveyed.violations.len(),
        message: message.as_deref().map(bounded::message),
        ..Row::new(found.place.clone(), state)
    }
}

/// The most agents before that a row names, the newest.
const MOST_PREVIOUS: usize = 4;

/// What only the pipeline's state tells of a story: its worker, and since when its tasks are worked on.
fn complete_story(
    row: &mut Row,
    state: &PipelineState,
    story: &str,
    found: &Found<'_>,
    scan: &Scan<'_>,
) {
    if row.agent.is_none() {
        row.agent = bounded::said(state.worker_map.get(story).map(String::as_str));
    }
    let is_begun = read::<StoryCheckpoint>(found.document)
        .is_ok_and(|it| !it.reading.value.completed().is_empty());
    let times = state.stage_timestamps.get(story).filter(|_| is_begun);
    let elapsed = times.and_then(|times| times.duration(2, scan.now));
    row.progress = row.progress.with_times(elapsed, None);
}
