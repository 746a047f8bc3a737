//! `ckpt report`: an HTML page with the fleet and the timeline of each task.

mod page;
mod shown;
mod style;
mod timeline;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use agent_checkpoint::fleet::{Fleet, FleetOptions, Place, Row, RowState, Source};
use agent_checkpoint::store::create_file;

use super::busy::Busy;
use super::resume;
use super::scan::Opened;
use super::status::judged;
use crate::args::{HtmlReport, Scope};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::{Outcome, one_line};
use crate::replace::replace;
use crate::report::count;
use crate::stdin;
use timeline::{Task, Timeline};

/// The largest number of entries in the timeline of a task.
const MOST_ENTRIES: usize = 200;
/// The largest number of entries in all timelines together, so that a page of a thousand tasks stays below 10 MB.
const MOST_OF_ALL: usize = 12_000;
/// The number of entries that each timeline may always show.
const FEWEST: usize = 12;

pub(super) fn run(how: &HtmlReport, global: &Global) -> Result<Outcome, Failure> {
    let to_output = stdin::is_named(&how.html);
    if to_output && global.json {
        return Err(Failure::usage(
            "--html - prints the page and --json prints JSON; omit one",
        ));
    }
    // Refuse a file that must not be replaced before anything is read.
    let earlier = match to_output {
        true => None,
        false => earlier_page(&how.html)?,
    };
    let mut outcome = Outcome::new();
    let opened = judged::opened(&how.scope, global)?.into_iter();
    let opened = opened.map(|it| it.or_not_begun(global, &mut outcome));
    let opened: Vec<Opened> = opened.collect();
    let sources: Vec<Source<'_>> = opened.iter().map(Opened::source).collect();
    let options = judged::options(&how.scope, global)?;
    let (fleet, tasks) = gather(&sources, &options, &how.scope, global, &mut outcome);
    judged::judge(&fleet, &mut outcome);
    let page = page::of(&fleet, &tasks)?;
    if to_output {
        outcome.out = page;
        return Ok(outcome);
    }
    write(&how.html, earlier.as_deref(), &page)?;
    let file = how.html.display().to_string();
    if global.json {
        outcome.json(&serde_json::json!({ "html": file, "totals": fleet.totals() }));
    } else {
        outcome.line(one_line(&format!(
            "made {file}: {}",
            count(fleet.rows().len(), "row")
        )));
    }
    Ok(outcome)
}

/// Scans, and reads each checkpoint that was found.
fn gather(
    sources: &[Source<'_>],
    options: &FleetOptions,
    scope: &Scope,
    global: &Global,
    outcome: &mut Outcome,
) -> (Fleet, HashMap<Place, Task>) {
    let mut busy = Busy::new();
    let fleet = Fleet::scan_with(sources, options, global.now(), &mut |rows| busy.tell(rows));
    let has_checkpoint = |row: &&Row| {
        matches!(
            row.state,
            RowState::Checkpoint { .. } | RowState::TakenOver { .. }
        )
    };
    let rows: Vec<&Row> = fleet.rows().iter().filter(has_checkpoint).collect();
    let most = MOST_OF_ALL
        .checked_div(rows.len())
        .map_or(MOST_ENTRIES, |share| share.clamp(FEWEST, MOST_ENTRIES));
    let mut tasks = HashMap::new();
    for (number, row) in rows.into_iter().enumerate() {
        busy.tell(number + 1);
        match task(row, most, scope, global) {
            Ok(task) => {
                tasks.insert(row.place.clone(), task);
            }
            Err(failure) => {
                if let Some(failure) = judged::failure_of(row, failure) {
                    outcome.fail(&failure);
                }
            }
        }
    }
    busy.finish();
    let fleet = fleet.judge_resumes(|row| Some(tasks.get(&row.place)?.resume.plan.clone()));
    (fleet, tasks)
}

fn task(row: &Row, most: usize, scope: &Scope, global: &Global) -> Result<Task, Failure> {
    let (target, global) = judged::target_of(row, global)?;
    let options = resume::options(&global);
    // Other messages of `resume` are not about the past.
    let mut unsaid = Outcome::new();
    let (resume, _) = resume::judge(&target, options, false, &global, &mut unsaid)?;
    let thresholds = judged::thresholds(scope, &target.format)?;
    let timeline = Timeline::of(&target, &resume, row, &thresholds, most);
    Ok(Task { resume, timeline })
}

/// The existing page at the output path; an error if the file there is something else.
fn earlier_page(file: &Path) -> Result<Option<String>, Failure> {
    if fs::symlink_metadata(file).is_err() {
        return Ok(None);
    }
    let is_page = fs::metadata(file).is_ok_and(|found| found.is_file()) && begins_as_a_page(file);
    match is_page.then(|| fs::read_to_string(file).ok()).flatten() {
        Some(text) => Ok(Some(text)),
        None => {
            let message = format!(
                "{}: exists and is not a page of `ckpt report`, so it was not changed; name another file with --html",
                file.display()
            );
            Err(Failure::exiting(Exit::Refused, message).at(Some(file), None))
        }
    }
}

/// Whether a file is such a page, by its beginning alone, because any other file may have any size.
fn begins_as_a_page(file: &Path) -> bool {
    let mut start = Vec::new();
    let most = u64::try_from(page::BEGINNING.len()).unwrap_or(u64::MAX);
    let read = File::open(file).and_then(|file| file.take(most).read_to_end(&mut start));
    read.is_ok() && start == page::BEGINNING.as_bytes()
}

fn write(file: &Path, earlier: Option<&str>, page: &str) -> Result<(), Failure> {
    let Some(earlier) = earlier else {
        return Ok(create_file(file, page.as_bytes())?);
    };
    let name = file.display();
    match replace(file, earlier, page) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let message = format!("{name}: was changed meanwhile; run it again");
            Err(Failure::new(message).at(Some(file), None))
        }
        Err(error) => {
            let message =
                format!("{name}: cannot be written: {error}; check the path and its rights");
            Err(Failure::new(message).at(Some(file), None))
        }
    }
}
