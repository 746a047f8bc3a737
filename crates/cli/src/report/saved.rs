//! What came of a change.

use agent_checkpoint::Saved;
use agent_checkpoint::checkpoint::Dropped;

use super::violation;
use crate::args::Global;
use crate::output::Outcome;

/// Reports a save: a line for each thing that was done, for a person, or the whole of it as JSON; what was cut and what is wrong
/// now goes to standard error in either case.
pub(crate) fn report(outcome: &mut Outcome, global: &Global, saved: &Saved, lines: &[String]) {
    outcome.is_done = true;
    if global.json {
        outcome.json(saved);
    } else {
        for line in lines {
            outcome.line(crate::output::one_line(line));
        }
    }
    for dropped in &saved.truncation.dropped {
        outcome.note(cut(dropped, saved.truncation.kept_in.as_deref()));
    }
    if let Some(over) = saved.truncation.over_budget {
        outcome.warn(format!(
            "the checkpoint has {} bytes, more than the {} it should have, and nothing is left that may be cut; \
             shorten its texts",
            over.bytes, over.limit
        ));
        outcome.found();
    }
    for found in &saved.violations {
        outcome.say("new violation", &violation(found));
        outcome.found();
    }
}

/// What was cut, why, and where it is.
fn cut(dropped: &Dropped, kept_in: Option<&str>) -> String {
    let kept = match kept_in {
        Some(place) => format!("the whole of it is kept in {place}"),
        None => "it is not kept".to_owned(),
    };
    if dropped.pointer.is_empty() {
        return format!("the checkpoint as it was before is put aside; {kept}");
    }
    format!("cut {} ({}); {kept}", dropped.pointer, dropped.reason)
}
