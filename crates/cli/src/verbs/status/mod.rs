//! `ckpt status`: all checkpoints of some folders in one table.

pub(super) mod judged;
mod planned;
pub(super) mod tables;
mod watch;

use agent_checkpoint::fleet::{Fleet, Row, Source};
use agent_checkpoint::liveness::{Liveness, Notice};

use super::scan::Opened;
use crate::args::Status;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::{Outcome, one_line};
use judged::{judge, opened, options, scanned, shown};

pub(super) fn run(how: &Status, global: &Global) -> Result<Outcome, Failure> {
    let mut opened = opened(&how.scope, global)?;
    let mut outcome = Outcome::new();
    if !how.watch {
        let begun = opened
            .into_iter()
            .map(|it| it.or_not_begun(global, &mut outcome));
        opened = begun.collect();
    }
    let sources: Vec<Source<'_>> = opened.iter().map(Opened::source).collect();
    let options = options(&how.scope, global)?;
    if how.watch {
        let stores = opened.iter().filter_map(Opened::store);
        return watch::run(&sources, stores, &options, how, global);
    }
    let fleet = scanned(&sources, &options, global, &mut outcome);
    judge(&fleet, &mut outcome);
    print(fleet, how, global, &mut outcome);
    Ok(outcome)
}

/// A heading for a message: its recipient and its checkpoint. A message that names its recipient gets only the latter.
fn addressed(row: &Row, message: &str) -> String {
    let agent = row.agent.as_deref().unwrap_or("its agent");
    let of = match &row.task {
        Some(task) => format!("{agent}, {task} ({})", row.place),
        None => format!("{agent} ({})", row.place),
    };
    match row.liveness().and_then(Liveness::notice) {
        _ if message.starts_with('@') => format!("About {of}:"),
        Some(Notice::Late) => format!("To {of}:"),
        _ => format!("To the user, about {of}:"),
    }
}

fn print(fleet: Fleet, how: &Status, global: &Global, outcome: &mut Outcome) {
    let fleet = shown(fleet, how);
    if global.json {
        outcome.json(&fleet);
        return;
    }
    outcome.out = if how.markdown {
        tables::markdown(&fleet)
    } else {
        tables::table(&fleet)
    };
    if how.messages {
        let rows = fleet.rows().iter();
        for (row, message) in rows.filter_map(|row| Some((row, row.message.as_ref()?))) {
            outcome.line("");
            outcome.line(one_line(&addressed(row, message)));
            for line in message.lines() {
                outcome.line(crate::output::harmless(line));
            }
        }
    }
    if how.due && fleet.rows().is_empty() {
        outcome.note("nothing is due");
    }
    if (how.resumable || how.due) && !how.markdown {
        for row in fleet.rows() {
            if let Some(next) = &row.next {
                let text = format!(
                    "{}: {}: {}",
                    row.place,
                    next.decision.as_str(),
                    next.message
                );
                outcome.line(one_line(&text));
            }
        }
    }
}
