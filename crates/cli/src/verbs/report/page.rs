//! The page: its data and its HTML.

use std::collections::HashMap;

use agent_checkpoint::Timestamp;
use agent_checkpoint::fleet::{Fleet, Place, Row, RowState, SkipReason};
use agent_checkpoint::ledger::Waiting;
use agent_checkpoint::resume::{ResumeDecision, ResumeReason};
use chrono::{DateTime, Utc};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::shown::Shown;
use super::style;
use super::timeline::{Entry, Kind, Task, Time, grounds};
use crate::failure::Failure;
use crate::output::stamp;
use crate::report::ledger;
use crate::verbs::effects::said_by_ledger;
use crate::verbs::status::tables::{age, is_poisoned, progress, span, summary};

/// The beginning of every page, by which an earlier page is recognized. The template has the same text.
pub(super) const BEGINNING: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
     <meta name=\"generator\" content=\"ckpt report\">\n";

/// How many tasks are expanded at most.
const MOST_OPEN: usize = 5;
/// How many items a list above a timeline has at most.
const MOST_LISTED: usize = 10;

/// The values of the template. All texts are [`Shown`] or our own.
#[derive(Serialize)]
struct Page {
    now: Stamp,
    summary: Shown,
    totals: Totals,
    attention: Vec<Attention>,
    rows: Vec<Line>,
    tasks: Vec<Section>,
    has_left: bool,
}

#[derive(Serialize)]
struct Totals {
    tasks: usize,
    percent: Option<u8>,
    attention: usize,
    active: usize,
    finished: usize,
    resumable: usize,
    left: Option<String>,
}

/// Something that a person should look at.
#[derive(Serialize)]
struct Attention {
    verdict: Option<Verdict>,
    /// The number of the section with the details, if there is one.
    section: Option<usize>,
    name: Option<Shown>,
    text: Shown,
}

/// A verdict in one word, and its severity.
#[derive(Clone, Serialize)]
struct Verdict {
    word: String,
    class: &'static str,
}

/// A row of the table.
#[derive(Serialize)]
struct Line {
    section: Option<usize>,
    name: Shown,
    agent: Option<Shown>,
    phase: Option<Shown>,
    percent: Option<u8>,
    progress: Shown,
    updated: Shown,
    verdict: Verdict,
    left: Option<String>,
    place: Shown,
}

/// A task with its timeline.
#[derive(Serialize)]
struct Section {
    number: usize,
    is_open: bool,
    line: usize,
    facts: Vec<Fact>,
    entries: Vec<Item>,
    hidden: usize,
    unknown: Option<Shown>,
}

#[derive(Serialize)]
struct Fact {
    name: &'static str,
    texts: Vec<Shown>,
}

/// An entry of a timeline.
#[derive(Serialize)]
struct Item {
    /// The day, if it differs from the day of the entry before.
    day: Option<String>,
    kind: &'static str,
    class: Kind,
    time: Option<Stamp>,
    until: Option<Stamp>,
    is_ahead: bool,
    no_time: Option<Shown>,
    text: Shown,
    details: Vec<Shown>,
}

/// A time for people and for programs.
#[derive(Serialize)]
struct Stamp {
    full: String,
    short: String,
    machine: String,
}

impl Stamp {
    fn new(at: DateTime<Utc>) -> Stamp {
        Stamp {
            full: at.format("%-d %B %Y, %H:%M UTC").to_string(),
            short: at.format("%H:%M").to_string(),
            machine: stamp(at),
        }
    }
}

/// The page of a fleet.
pub(super) fn of(fleet: &Fleet, tasks: &HashMap<Place, Task>) -> Result<String, Failure> {
    let rendered = render(&values(fleet, tasks));
    rendered.map_err(|error| Failure::new(format!("the page cannot be made: {error:#}")))
}

fn render(page: &Page) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).build()?);
    let css = style::css();
    environment.add_global("style_hash", Value::from_safe_string(style::hash(&css)));
    environment.add_global("style", Value::from_safe_string(css));
    environment.add_template("page", include_str!("page.html"))?;
    environment.get_template("page")?.render(Serde(page))
}

fn values(fleet: &Fleet, tasks: &HashMap<Place, Task>) -> Page {
    let (mut rows, mut sections, mut attention) = (Vec::new(), Vec::new(), Vec::new());
    for row in fleet.rows() {
        let task = tasks.get(&row.place);
        let section = task.map(|_| sections.len() + 1);
        let line = line(row, section, fleet.now());
        let needs_attention = needs_attention(row, task);
        if needs_attention {
            attention.push(Attention {
                verdict: Some(line.verdict.clone()),
                section,
                name: Some(line.name.clone()),
                text: why(row, task),
            });
        }
        if let (Some(task), Some(number)) = (task, section) {
            let entries = items(&task.timeline.entries);
            sections.push(Section {
                number,
                is_open: needs_attention,
                line: rows.len(),
                facts: facts(row, task),
                entries,
                hidden: task.timeline.hidden,
                unknown: task.timeline.unknown.as_ref().map(Shown::new),
            });
        }
        rows.push(line);
    }
    // A page with everything expanded is hard to read.
    let few = sections.len() <= 2;
    let open = sections.iter_mut().filter(|section| section.is_open);
    open.skip(MOST_OPEN)
        .for_each(|section| section.is_open = false);
    sections
        .iter_mut()
        .filter(|_| few)
        .for_each(|section| section.is_open = true);
    let tasks_to_look_at = attention.len();
    attention.extend(fleet.findings().iter().map(|finding| Attention {
        verdict: None,
        section: None,
        name: None,
        text: Shown::new(finding.to_string()),
    }));
    for skipped in fleet.skipped() {
        if let SkipReason::Unreadable(reason) = &skipped.why {
            let what = Shown::new(&skipped.what);
            attention.push(Attention {
                verdict: Some(Verdict {
                    word: "unreadable".to_owned(),
                    class: "bad",
                }),
                section: None,
                name: Some(what),
                text: Shown::new(reason),
            });
        }
    }
    let totals = fleet.totals();
    Page {
        now: Stamp::new(fleet.now()),
        summary: Shown::new(summary(fleet)),
        totals: Totals {
            tasks: totals.rows - totals.count("missing"),
            percent: totals.percent,
            attention: tasks_to_look_at,
            active: totals.count("active"),
            finished: totals.count("finished"),
            resumable: totals.resumable,
            left: totals.rest.map(span),
        },
        attention,
        has_left: rows.iter().any(|row| row.left.is_some()),
        rows,
        tasks: sections,
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The fleet

fn line(row: &Row, section: Option<usize>, now: DateTime<Utc>) -> Line {
    let place = row.place.to_string();
    let name = match (&row.task, &row.state) {
        (Some(task), _) => task.clone(),
        (None, RowState::Missing) => row.agent.clone().unwrap_or_else(|| place.clone()),
        (None, _) => place.clone(),
    };
    Line {
        section,
        name: Shown::new(name),
        agent: row.agent.as_ref().map(Shown::new),
        phase: row.phase.as_ref().map(Shown::new),
        percent: row.progress.percent,
        progress: Shown::new(progress(row)),
        updated: Shown::new(age(row.updated_at.as_ref(), now)),
        verdict: verdict(row),
        left: row.progress.rest.map(span),
        place: Shown::new(place),
    }
}

fn verdict(row: &Row) -> Verdict {
    let result = match is_poisoned(row) {
        true => "poisoned",
        false => row.result(),
    };
    let class = match result {
        "active" | "finished" => "good",
        "late" | "waiting" | "blocked" | "clock_suspect" | "unknown" => "warn",
        "not_started" | "claimed" | "taken_over" => "calm",
        _ => "bad",
    };
    Verdict {
        word: result.replace('_', " "),
        class,
    }
}

/// Whether a person should look at a task, even one with a good verdict that waits for a person.
fn needs_attention(row: &Row, task: Option<&Task>) -> bool {
    let waits = row.liveness().is_some_and(|it| it.as_str() == "blocked");
    let is_asked = task.is_some_and(|task| !in_doubt(task).is_empty() || poisoned(task).is_some());
    row.needs_attention() || waits || is_asked || awaits_approval(row, task)
}

/// Whether a person must decide on an approval, even if the task also waits for a time.
fn awaits_approval(row: &Row, task: Option<&Task>) -> bool {
    let is_it = |reason: &ResumeReason| matches!(reason, ResumeReason::AwaitsApproval { .. });
    matches!(row.waiting, Some(Waiting::Approval { .. }))
        || task.is_some_and(|task| task.resume.plan.reasons.iter().any(is_it))
}

/// Why no agent may continue a task until a person has fixed it, if so.
fn poisoned(task: &Task) -> Option<String> {
    let (decision, message) = said_by_ledger(&task.resume.plan)?;
    (decision == ResumeDecision::Refuse).then_some(message)
}

/// Why a person should look at a task.
fn why(row: &Row, task: Option<&Task>) -> Shown {
    let mut texts = Vec::new();
    let is_asked = awaits_approval(row, task);
    if is_asked {
        texts.push("a person must decide first".to_owned());
    }
    // The work for the person comes first, because the end of a long text is cut.
    if let Some(task) = task {
        if is_asked {
            // The questions about approvals are the last.
            texts.extend(task.resume.plan.questions.iter().rev().cloned());
        }
        texts.extend(poisoned(task));
    }
    match &row.state {
        RowState::Checkpoint { liveness } => texts.push(grounds(liveness)),
        RowState::Corrupt { reason } | RowState::Unreadable { reason } => {
            texts.push(reason.clone());
        }
        RowState::Missing => texts.push("it should have a checkpoint but has none".to_owned()),
        _ => {}
    }
    if let Some(task) = task {
        texts.extend(task.resume.handoff.blockers.iter().cloned());
        let doubts = in_doubt(task);
        // If there is an approval, the questions include them.
        if !doubts.is_empty() && !is_asked {
            let doubts = doubts.join(", ");
            texts.push(format!(
                "it is not recorded whether these effects took place: {doubts}"
            ));
        }
    }
    Shown::new(texts.join("; "))
}

/// The effects in doubt.
fn in_doubt(task: &Task) -> Vec<&str> {
    let effects = ledger::in_doubt(&task.resume.ledger.effects);
    effects.map(|effect| effect.id.as_str()).collect()
}

// ---------------------------------------------------------------------------------------------------------------------
// A task

/// The facts above the timeline of a task.
fn facts(row: &Row, task: &Task) -> Vec<Fact> {
    let (resume, handoff) = (&task.resume, &task.resume.handoff);
    let mut facts = Vec::new();
    let mut fact = |name, texts: Vec<Shown>| {
        if !texts.is_empty() {
            facts.push(Fact { name, texts });
        }
    };
    fact("About", Shown::all(&resume.description));
    if let Some(liveness) = row.liveness() {
        fact("State", Shown::all([liveness.to_string()]));
    }
    if let RowState::TakenOver { by } = &row.state {
        fact("State", Shown::all([format!("taken over by {by}")]));
    }
    fact(
        "Status",
        Shown::all([handoff.status.as_str().replace('_', " ")]),
    );
    fact("Phase", Shown::all(&handoff.phase));
    let agent = handoff.agent.as_ref();
    let agent = agent.map(|agent| match handoff.previous_agents.as_slice() {
        [] => agent.clone(),
        before => format!("{agent}, after {}", before.join(", ")),
    });
    fact("Agent", Shown::all(agent));
    let updated = handoff.updated_at.as_ref();
    fact(
        "Updated",
        Shown::all(updated.map(|at| updated_text(at, resume.now))),
    );
    if let Some(owner) = row.owner.as_ref().filter(|owner| owner.stands) {
        let until = Stamp::new(owner.until).full;
        fact(
            "Claimed",
            Shown::all([format!("by {} until {until}", owner.name)]),
        );
    }
    fact("Blockers", listed(handoff.blockers.iter()));
    let begun = handoff.in_progress.iter();
    fact("In progress", listed(begun.map(|step| &step.text)));
    let left = handoff.pending.iter();
    let is_begun = |step: &&String| handoff.in_progress.iter().any(|it| it.text == **step);
    fact("Still to do", listed(left.filter(|step| !is_begun(step))));
    if !resume.plan.reasons.contains(&ResumeReason::Complete) {
        let message = &resume.plan.message;
        let decision = resume.plan.decision.as_str();
        fact("To go on", Shown::all([format!("{decision}: {message}")]));
        fact("Questions", listed(resume.plan.questions.iter()));
    }
    fact("Place", Shown::all([row.place.to_string()]));
    facts
}

fn updated_text(at: &Timestamp, now: DateTime<Utc>) -> String {
    let text = age(Some(at), now);
    match at.time() {
        Some(time) if text != at.to_string() => {
            format!("{text} ({})", Stamp::new(time.to_utc()).full)
        }
        _ => text,
    }
}

/// The first items of a list, and how many more there are.
fn listed<'t>(all: impl Iterator<Item = &'t String>) -> Vec<Shown> {
    let all: Vec<&String> = all.collect();
    let mut shown = Shown::all(all.iter().take(MOST_LISTED));
    if all.len() > MOST_LISTED {
        shown.push(Shown::new(format!("and {} more", all.len() - MOST_LISTED)));
    }
    shown
}

fn items(entries: &[Entry]) -> Vec<Item> {
    let mut day = None;
    let of = |entry: &Entry| {
        let (time, until) = match entry.time {
            Time::At(at) | Time::Ahead(at) => (Some(at), None),
            Time::Between(from, to) => (Some(from), Some(to)),
            Time::Written(_) | Time::Unknown => (None, None),
        };
        // A silence that passes midnight is listed on the day of its end.
        let shown = until.or(time).map(|at| at.date_naive());
        let is_new = shown.is_some() && shown != day;
        day = shown.or(day);
        Item {
            day: shown
                .filter(|_| is_new)
                .map(|day| day.format("%-d %B %Y").to_string()),
            kind: entry.kind.word(),
            class: entry.kind,
            time: time.map(Stamp::new),
            until: until.map(Stamp::new),
            is_ahead: matches!(entry.time, Time::Ahead(_)),
            no_time: match &entry.time {
                Time::Written(text) => Some(Shown::new(text)),
                _ => None,
            },
            text: Shown::new(&entry.text),
            details: Shown::all(&entry.details),
        }
    };
    entries.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_begins_as_a_page_is_known_by() {
        assert!(
            include_str!("page.html")
                .replace('\r', "")
                .starts_with(BEGINNING)
        );
    }
}
