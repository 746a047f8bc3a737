//! `ckpt guide`: the page to give an agent.

use serde::Serialize;

use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;

/// What `guide --json` prints of each format.
#[derive(Serialize)]
struct Page {
    format: &'static str,
    text: &'static str,
}

pub(super) fn run(name: Option<&str>, global: &Global) -> Result<Outcome, Failure> {
    let formats = &global.formats;
    let named = match name {
        Some(name) => vec![formats.get(name)?],
        None => formats.iter().collect(),
    };
    let pages = named.iter().filter_map(|format| {
        let text = format.guide()?;
        Some(Page {
            format: format.name(),
            text,
        })
    });
    let pages: Vec<Page> = pages.collect();
    let mut outcome = Outcome::new();
    if global.json {
        outcome.json(&pages);
        return Ok(outcome);
    }
    for page in &pages {
        if name.is_some() {
            outcome.out.push_str(page.text);
        } else {
            let title = page.text.lines().next().unwrap_or_default();
            outcome.line(format!(
                "{:20} {}",
                page.format,
                title.trim_start_matches("# ")
            ));
        }
    }
    Ok(outcome)
}
