//! What came of the rules.

use std::fmt::Write;

use serde::Serialize;

use super::rule::{Rule, Ruling, Stop};

/// What became of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "verdict", content = "why")]
#[must_use]
#[non_exhaustive]
pub enum Verdict {
    /// The store keeps it.
    Held,
    /// It was not tried, and why.
    Skipped(String),
    /// The store breaks it, and how.
    Failed(String),
}

impl Verdict {
    pub(super) fn of(ruling: Ruling) -> Verdict {
        match ruling {
            Ok(()) => Verdict::Held,
            Err(Stop::Skipped(why)) => Verdict::Skipped(why),
            Err(Stop::Failed(why)) => Verdict::Failed(why),
        }
    }
}

/// One rule with its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// The rule's name.
    pub rule: &'static str,
    /// The sentence of the contract that it proves.
    pub about: &'static str,
    /// What became of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Line {
    pub(super) fn new(rule: &Rule, verdict: Verdict) -> Line {
        Line {
            rule: rule.name,
            about: rule.about,
            verdict,
        }
    }
}

/// All rules with their verdicts, always in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct Report {
    /// One line for each rule.
    pub lines: Vec<Line>,
    /// What the store promises ([`Capabilities`](crate::store::Capabilities)) and no rule proved: because it
    /// was skipped, or because there is none, as for a loss of power.
    pub unproved: Vec<&'static str>,
}

impl Report {
    /// Whether no rule failed. Rules that were skipped are no failures.
    #[must_use]
    pub fn is_conformant(&self) -> bool {
        self.failed().next().is_none()
    }

    /// The rules that failed, each with how.
    pub fn failed(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.lines.iter().filter_map(|line| match &line.verdict {
            Verdict::Failed(why) => Some((line.rule, why.as_str())),
            _ => None,
        })
    }

    /// The rules that were skipped, each with why.
    pub fn skipped(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.lines.iter().filter_map(|line| match &line.verdict {
            Verdict::Skipped(why) => Some((line.rule, why.as_str())),
            _ => None,
        })
    }

    /// A table in Markdown, the promises that nothing proved, and a line that counts.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = "| rule | verdict |\n|---|---|\n".to_owned();
        let mut held = 0;
        for line in &self.lines {
            let verdict = match &line.verdict {
                Verdict::Held => {
                    held += 1;
                    "held".to_owned()
                }
                Verdict::Skipped(why) => format!("skipped: {}", cell(why)),
                Verdict::Failed(why) => format!("**failed**: {}", cell(why)),
            };
            // Writing to a text does not fail.
            let _written = writeln!(text, "| `{}` | {verdict} |", line.rule);
        }
        if !self.unproved.is_empty() {
            let promises = self.unproved.join("`, `");
            let _written = writeln!(text, "\nPromised, and proved by no rule: `{promises}`.");
        }
        let (failed, skipped) = (self.failed().count(), self.skipped().count());
        let _written = writeln!(text, "\n{held} held, {skipped} skipped, {failed} failed.");
        text
    }
}

/// A text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}
