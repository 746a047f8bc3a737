//! Plans whose steps are texts: finds the step that a report means, and changes the plan.

use crate::shown::quoted_all;
use crate::{is_blank, quoted};
use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::checkpoint::{Error, Result, StepDone};

/// A step that is reported as finished.
pub(super) struct Finished {
    /// The text of the report.
    pub(super) text: String,
    /// The planned step that leaves the plan.
    leaves: Option<String>,
}

impl Finished {
    /// Removes the step from the plan; returns whether it was the current one.
    pub(super) fn leave(&self, plan: &mut Vec<String>, current: Option<&str>) -> bool {
        if let Some(at) = plan
            .iter()
            .position(|step| Some(step) == self.leaves.as_ref())
        {
            plan.remove(at);
        }
        current.is_some() && current == self.leaves.as_deref()
    }
}

/// Finds the step that a report finishes. The text may differ from the planned one, so the step that leaves the plan is
/// the one named in the report, else the planned one with the same text, else the current one. `None` when a finished
/// step is reported again in the same words, as after a time-out: the current step is then another. Errors call the
/// steps of the plan `planned`.
pub(super) fn finished(
    done: &StepDone,
    current: Option<&str>,
    plan: &[String],
    planned: &str,
    is_finished: impl Fn(&str) -> bool,
) -> Result<Option<Finished>> {
    let named = done.named(current)?;
    let Some(text) = done.text().or(current) else {
        return Err(Error::refused(
            "no step is in progress; name the step that was finished",
        ));
    };
    let is_planned = |step: &str| plan.iter().any(|planned| planned == step);
    let leaves = match named {
        Some(named) if !is_planned(&named) && current != Some(&named) => {
            return Err(Error::refused(format!(
                "{named} is not a {planned} step; the {planned} steps are {}",
                quoted_all(plan),
                named = quoted(&named)
            )));
        }
        Some(named) => Some(named),
        None if is_planned(text) || current == Some(text) => Some(text.to_owned()),
        None if is_finished(text) => return Ok(None),
        None => finished_with(text, current, plan)?,
    };
    let text = text.to_owned();
    Ok(Some(Finished { text, leaves }))
}

/// Finds the planned step for a report in other words: the current step, unless another planned step resembles the text
/// more. That case is an error, since either may be meant.
pub(super) fn finished_with(
    text: &str,
    current: Option<&str>,
    plan: &[String],
) -> Result<Option<String>> {
    let said = words(text);
    let as_current = current.map_or(Likeness::NONE, |current| Likeness::of(&said, current));
    let others = plan.iter().filter(|step| current != Some(step.as_str()));
    let mut nearer: Vec<(Likeness, &str)> = others
        .map(|step| (Likeness::of(&said, step), step.as_str()))
        .filter(|(likeness, _)| likeness.is_greater_than(as_current))
        .collect();
    if nearer.is_empty() {
        return Ok(current.map(str::to_owned));
    }
    nearer.sort_by(|(one, _), (other, _)| other.compare(*one));
    let named: Vec<String> = nearer
        .iter()
        .take(MOST_NAMED)
        .map(|(_, step)| quoted(step))
        .collect();
    let named = named.join(" or ");
    Err(Error::refused(match current {
        Some(current) => format!(
            "it is unclear which step {text} finishes: its words are closer to {named}, which is planned, than to \
             {current}, which is in progress; name the planned step that is finished",
            text = quoted(text),
            current = quoted(current)
        ),
        None => format!(
            "it is unclear which step {text} finishes: no step is in progress, and its words are close to {named}; \
             name the planned step that is finished",
            text = quoted(text)
        ),
    }))
}

const MOST_NAMED: usize = 3;

/// The likeness of two texts: the number of words in common, and of all different words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Likeness {
    equal: usize,
    all: usize,
}

impl Likeness {
    const NONE: Likeness = Likeness { equal: 0, all: 1 };

    fn of(one: &BTreeSet<String>, other: &str) -> Likeness {
        let other = words(other);
        Likeness {
            equal: one.intersection(&other).count(),
            all: one.union(&other).count().max(1),
        }
    }

    fn compare(self, other: Likeness) -> std::cmp::Ordering {
        (self.equal * other.all).cmp(&(other.equal * self.all))
    }

    fn is_greater_than(self, other: Likeness) -> bool {
        self.compare(other).is_gt()
    }
}

/// The words of a text in lower case, without the endings that differ between a plan and a report. In scripts without
/// spaces between words, such as Chinese, Japanese and Thai, each pair of adjacent letters counts as a word, since
/// single letters are too common to distinguish steps.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let runs = text.split(|letter: char| !letter.is_alphanumeric());
    for run in runs.filter(|run| !run.is_empty()) {
        let run = run.to_lowercase();
        if run.is_ascii() {
            // An ASCII run is one word: there is no boundary between letters and digits.
            words.insert(stem(&run));
            continue;
        }
        let parts: Vec<&str> = run.split_word_bounds().collect();
        let is_letter = |part: &str| part.graphemes(true).nth(1).is_none();
        for (at, part) in parts.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| parts.get(at));
            match parts.get(at + 1).filter(|next| is_letter(next)) {
                Some(next) if is_letter(part) => words.insert(format!("{part}{next}")),
                // The letter is already part of a pair.
                _ if is_letter(part) && before.is_some_and(|before| is_letter(before)) => false,
                _ => words.insert(stem(part)),
            };
        }
    }
    words
}

fn stem(word: &str) -> String {
    let stems = ["ing", "ed", "es", "e", "s"].iter();
    let mut stems = stems.filter_map(|ending| word.strip_suffix(ending));
    // The stem must have at least two letters: `is` and `red` have no ending.
    let stem = stems.find(|stem| stem.chars().count() > 1);
    stem.unwrap_or(word).to_owned()
}

/// Adds a step to the plan, before another or at its end. A step that is already planned or in progress stays where it
/// is.
pub(super) fn add(
    plan: &mut Vec<String>,
    current: Option<&str>,
    text: &str,
    before: Option<&str>,
) -> Result<()> {
    if plan.iter().any(|step| step == text) || current == Some(text) {
        return Ok(());
    }
    let at = match before {
        Some(before) => place(plan, before)?,
        None => plan.len(),
    };
    plan.insert(at, text.to_owned());
    Ok(())
}

/// Drops a step from the plan; returns whether it was the current one.
pub(super) fn drop(plan: &mut Vec<String>, current: Option<&str>, text: &str) -> Result<bool> {
    let is_current = current == Some(text);
    match place(plan, text) {
        Ok(at) => {
            plan.remove(at);
        }
        Err(_) if is_current => {}
        Err(error) => return Err(error),
    }
    Ok(is_current)
}

/// Changes the text of a planned step and keeps its position; returns whether it is the current one.
pub(super) fn reword(
    plan: &mut [String],
    current: Option<&str>,
    text: &str,
    to: &str,
) -> Result<bool> {
    if text != to && (plan.iter().any(|step| step == to) || current == Some(to)) {
        return Err(Error::refused(format!(
            "{to} is planned already",
            to = quoted(to)
        )));
    }
    let is_current = current == Some(text);
    match place(plan, text) {
        Ok(at) => to.clone_into(&mut plan[at]),
        Err(_) if is_current => {}
        Err(error) => return Err(error),
    }
    Ok(is_current)
}

/// Moves a planned step before another.
pub(super) fn reorder(plan: &mut Vec<String>, text: &str, before: &str) -> Result<()> {
    let at = place(plan, text)?;
    place(plan, before)?;
    if text == before {
        return Err(Error::refused("a step cannot be moved before itself"));
    }
    let step = plan.remove(at);
    let to = place(plan, before)?;
    plan.insert(to, step);
    Ok(())
}

/// The most steps of a plan that an error lists.
const MOST_LISTED: usize = 6;

fn place(plan: &[String], text: &str) -> Result<usize> {
    plan.iter().position(|step| step == text).ok_or_else(|| {
        let first = &plan[..plan.len().min(MOST_LISTED)];
        let more = match plan.len() - first.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Error::refused(format!(
            "{text} is not a planned step; the planned steps are {first}{more}",
            text = quoted(text),
            first = quoted_all(first)
        ))
    })
}

/// Adds texts to a list, each once; blank ones are skipped.
pub(super) fn add_each_once(
    list: &mut Vec<String>,
    texts: impl IntoIterator<Item = impl AsRef<str>>,
) {
    for text in texts {
        let text = text.as_ref();
        if !is_blank(text) && !list.iter().any(|known| known == text) {
            list.push(text.to_owned());
        }
    }
}

/// The texts of lists, each once.
pub(super) fn each_once<'t>(texts: impl IntoIterator<Item = &'t String>) -> Vec<&'t str> {
    let mut seen = BTreeSet::new();
    let texts = texts.into_iter().map(String::as_str);
    texts.filter(|text| seen.insert(*text)).collect()
}

/// The text of a decision, for a format that keeps decisions as texts.
pub(super) fn decided(text: &str, rationale: Option<&str>) -> String {
    let because = rationale.map_or_else(String::new, |why| format!(" (because {why})"));
    format!("Decided: {text}{because}")
}

/// The text, unless it is blank.
pub(super) fn said(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !is_blank(text))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn an_error_lists_only_the_first_steps_of_a_long_plan() {
        let plan: Vec<String> = (0..20_000).map(|step| format!("step {step}")).collect();
        let error = place(&plan, "other").unwrap_err().to_string();
        assert!(error.ends_with("\"step 5\" and 19994 more"), "{error}");
    }

    #[test]
    fn words_are_compared_without_case_and_endings() {
        assert_eq!(words("Wired the Toggles!"), words("wire THE toggle"));
        assert_eq!(words("writing, writes"), words("write"));
        assert_eq!(words("item_2 of T060"), words("item 2 OF t060"));
        assert_eq!(stem("is"), "is");
        assert_eq!(stem("red"), "red");
    }

    #[test]
    fn texts_without_spaces_are_compared_by_their_pairs_of_letters() {
        let pairs = |text: &str| words(text).into_iter().collect::<BTreeSet<_>>();
        assert_eq!(pairs("写测试"), ["写测", "测试"].map(str::to_owned).into());
        assert_eq!(
            pairs("API文档 写"),
            ["api", "文档", "写"].map(str::to_owned).into()
        );
        for (planned, current, reported) in [
            ("编写单元测试", "更新接口文档", "单元测试写好了"),
            (
                "ログイン画面のテストを書く",
                "設定を読み込む",
                "ログイン画面のテストを書いた",
            ),
            ("เขียนการทดสอบ", "ปรับปรุงเอกสาร", "การทดสอบเสร็จแล้ว"),
        ] {
            let plan = [current.to_owned(), planned.to_owned()];
            let unclear = finished_with(reported, Some(current), &plan).unwrap_err();
            let named = format!("closer to {}, which", quoted(planned));
            assert!(unclear.to_string().contains(&named), "{unclear}");
            assert!(finished_with(reported, None, &plan).is_err());
            let as_current = finished_with(reported, Some(planned), &plan).unwrap();
            assert_eq!(as_current.as_deref(), Some(planned));
        }
        // One common particle is not enough.
        let plan = ["設定を読む".to_owned()];
        assert_eq!(finished_with("図を描いた", None, &plan).unwrap(), None);
    }

    #[test]
    fn a_text_finishes_the_current_step_unless_it_reads_more_like_another() {
        let plan = |steps: &[&str]| {
            steps
                .iter()
                .map(|&step| step.to_owned())
                .collect::<Vec<_>>()
        };
        let toggle = plan(&["Wire toggle", "Write tests"]);
        let left = finished_with("Wired toggle to context", Some("Wire toggle"), &toggle);
        assert_eq!(left.unwrap().as_deref(), Some("Wire toggle"));
        let wrong = finished_with("Wrote the tests", Some("Wire toggle"), &toggle).unwrap_err();
        assert!(wrong.to_string().contains("\"Write tests\""), "{wrong}");
        assert!(!wrong.to_string().contains("nothing"), "{wrong}");
        let free = finished_with("Something else", Some("Wire toggle"), &toggle);
        assert_eq!(free.unwrap().as_deref(), Some("Wire toggle"));
        assert_eq!(
            finished_with("Something else", None, &toggle).unwrap(),
            None
        );
        assert!(finished_with("Tested it all", None, &toggle).is_err());
    }
}
