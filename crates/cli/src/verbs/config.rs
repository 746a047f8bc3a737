//! `ckpt config`: each setting, its value and its origin.

use serde::Serialize;

use crate::global::{Global, Origin, variable};
use crate::output::{Outcome, harmless};
use crate::report::{Style, lines};

#[derive(Serialize)]
struct Line<'s> {
    setting: &'s str,
    value: Option<&'s str>,
    from: &'static str,
    /// The option, the variable, or the file and the line.
    place: Option<String>,
}

pub(super) fn run(global: &Global) -> Outcome {
    let settings = global.settings.iter().map(|setting| {
        let (from, place) = match &setting.origin {
            Origin::Flag => ("flag", Some(format!("--{}", setting.name))),
            Origin::Variable => ("variable", Some(variable(setting.name))),
            Origin::File(place) => ("file", Some(place.clone())),
            Origin::Default => ("default", None),
        };
        Line {
            setting: setting.name,
            value: setting.value.as_deref(),
            from,
            place,
        }
    });
    let settings: Vec<Line<'_>> = settings.collect();
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&settings);
        return outcome;
    }
    let mut table = Style::of_output().table(&["setting", "value", "from"]);
    for setting in &settings {
        let from = setting.place.as_deref().unwrap_or(setting.from);
        table.add_row([
            harmless(setting.setting),
            harmless(setting.value.unwrap_or("—")),
            harmless(from),
        ]);
    }
    for line in lines(&table) {
        outcome.styled(&line);
    }
    outcome
}
