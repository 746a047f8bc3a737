//! The note on a step that the plan lacks: it may be mistyped.

use agent_checkpoint::quoted;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use agent_checkpoint::{Handoff, Operation, ReportEffect};

/// How many characters of a text are compared: steps differ at the beginning.
const COMPARED: usize = 120;

/// The note on a reported step, given the steps that left the plan with it.
pub(crate) fn of_step(effect: &ReportEffect<'_>, left_plan: &[String]) -> Option<String> {
    match &effect.report.operation {
        Operation::StepStart { text } => started(text, effect),
        Operation::StepDone(done) if done.pending().is_none() && !done.finishes_current() => {
            finished(done.text()?, effect, left_plan)
        }
        Operation::SubtaskStart { id } | Operation::TaskStart { id } => started(id, effect),
        Operation::SubtaskDone { id, .. } | Operation::SubtaskFail { id, .. } => {
            let was_done = effect.was_done(id);
            not_planned(id, effect.before).filter(|_| !was_done)
        }
        _ => None,
    }
}

/// Steps that occur more than once in a plan: a report finishes only one of them.
pub(crate) fn twice(plan: &[String]) -> Vec<String> {
    let (mut seen, mut again) = (HashSet::new(), HashSet::new());
    let steps = plan
        .iter()
        .filter(|step| !seen.insert(*step) && again.insert(*step));
    let steps: Vec<&String> = steps.collect();
    let note = |step: &String| {
        format!(
            "{step} is in the plan more than once; each has to be finished",
            step = quoted(step)
        )
    };
    steps.into_iter().map(note).collect()
}

fn started(text: &str, effect: &ReportEffect<'_>) -> Option<String> {
    if effect.was_done(text) && !is_open(text, effect.before) {
        return Some(format!(
            "{text} is finished already, and begins again",
            text = quoted(text)
        ));
    }
    not_planned(text, effect.before)
}

fn is_open(text: &str, before: &Handoff) -> bool {
    let mut open = before.in_progress.iter().map(|item| &item.text);
    before.pending.iter().any(|step| step == text) || open.any(|step| step == text)
}

fn not_planned(text: &str, before: &Handoff) -> Option<String> {
    let planned = &before.pending;
    let is_unknown = !planned.is_empty() && !is_open(text, before);
    is_unknown.then(|| match nearest(text, planned) {
        Some(near) => format!(
            "{text} is not in the plan; the closest planned step is {near}",
            text = quoted(text),
            near = quoted(near)
        ),
        None => format!("{text} is not in the plan", text = quoted(text)),
    })
}

fn finished(text: &str, effect: &ReportEffect<'_>, left_plan: &[String]) -> Option<String> {
    if effect.after.pending.is_empty() || !left_plan.is_empty() || effect.was_done(text) {
        return None;
    }
    Some(format!(
        "{text} is not in the plan, and no step left the plan; name the planned step that is finished with --pending",
        text = quoted(text)
    ))
}

/// The texts that are no longer planned or in progress.
pub(crate) fn left_plan(before: &Handoff, after: &Handoff) -> Vec<String> {
    let left = no_longer_in(&open(after), &open(before));
    left.into_iter().map(str::to_owned).collect()
}

/// The elements that a list had and has no more, each once for each time that it was taken out.
fn no_longer_in<T: Copy + Eq + Hash>(is: &[T], was: &[T]) -> Vec<T> {
    // Skip the common beginning: a report changes few steps of a long plan.
    let pairs = was.iter().zip(is);
    let same = pairs.take_while(|(was, is)| was == is).count();
    let (was, is) = (&was[same..], &is[same..]);
    let pairs = was.iter().rev().zip(is.iter().rev());
    let same = pairs.take_while(|(was, is)| was == is).count();
    let (was, is) = (&was[..was.len() - same], &is[..is.len() - same]);
    let mut still: HashMap<T, usize> = HashMap::new();
    for &element in is {
        *still.entry(element).or_default() += 1;
    }
    let mut left = was.to_vec();
    left.retain(|element| match still.get_mut(element) {
        Some(times) if *times > 0 => {
            *times -= 1;
            false
        }
        _ => true,
    });
    left
}

/// The open steps, each as often as the plan has it.
fn open(handoff: &Handoff) -> Vec<&str> {
    let begun = handoff.in_progress.iter();
    let begun = begun.filter(|item| !handoff.pending.contains(&item.text));
    begun
        .map(|item| item.text.as_str())
        .chain(handoff.pending.iter().map(String::as_str))
        .collect()
}

/// The step that is most similar to a text, if one is similar enough.
fn nearest<'p>(text: &str, plan: &'p [String]) -> Option<&'p str> {
    let near = plan.iter().map(|step| (distance(text, step), step));
    let (distance, step) = near.min_by_key(|(distance, _)| *distance)?;
    let length = plain(text).len().max(plain(step).len());
    (distance * 3 <= length).then_some(step)
}

/// The letters and digits by which texts are compared.
fn plain(text: &str) -> Vec<char> {
    let letters = text.chars().filter(|letter| letter.is_alphanumeric());
    letters
        .flat_map(char::to_lowercase)
        .take(COMPARED)
        .collect()
}

/// The edit distance of two texts.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (plain(one), plain(other));
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (down, letter) in one.iter().enumerate() {
        let mut corner = row[0];
        row[0] = down + 1;
        for (across, wanted) in other.iter().enumerate() {
            let replaced = corner + usize::from(letter != wanted);
            corner = row[across + 1];
            row[across + 1] = replaced.min(corner + 1).min(row[across] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_distance_counts_letters_without_case_and_marks() {
        assert_eq!(distance("Write Tests.", "write tests"), 0);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }

    fn planned(steps: impl IntoIterator<Item = String>) -> Handoff {
        let mut handoff = Handoff::default();
        handoff.pending.extend(steps);
        handoff
    }

    #[test]
    fn a_step_that_is_planned_twice_leaves_once_for_each() {
        let steps = |texts: &[&str]| planned(texts.iter().map(|text| (*text).to_owned()));
        let left = left_plan(&steps(&["a", "b", "a", "a"]), &steps(&["a", "c"]));
        assert_eq!(left, ["b", "a", "a"]);
    }

    /// A step that counts how often it is compared.
    #[derive(Clone, Copy)]
    struct Counted<'c>(usize, &'c Cell<usize>);

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted<'_> {}

    impl Hash for Counted<'_> {
        fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
            self.0.hash(hasher);
        }
    }

    #[test]
    fn what_left_a_long_plan_is_found_with_a_few_comparisons_for_each_step() {
        const STEPS: usize = 2_000;
        let first_left: Vec<usize> = (1..STEPS).collect();
        let turned_round = (1..STEPS).rev().collect();
        for is in [first_left, turned_round] {
            let count = Cell::new(0);
            let counted = |step| Counted(step, &count);
            let was: Vec<_> = (0..STEPS).map(counted).collect();
            let is: Vec<_> = is.into_iter().map(counted).collect();
            let left = no_longer_in(&is, &was);
            assert_eq!(left.iter().map(|step| step.0).collect::<Vec<_>>(), [0]);
            assert!(count.get() < STEPS * 4, "{} comparisons", count.get());
        }
    }

    #[test]
    fn what_reads_otherwise_is_not_near() {
        let plan = ["Write tests".to_owned(), "Wire toggle".to_owned()];
        assert_eq!(nearest("Wrote tests", &plan), Some("Write tests"));
        assert_eq!(nearest("Deploy", &plan), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
