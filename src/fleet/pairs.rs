//! One id in two checkpoints.

use std::collections::BTreeMap;

use super::survey::Found;
use super::{Finding, Row, bounded};
use crate::checkpoint::Handoff;

/// Which checkpoints have which id, by project, format and the file that the id has.
#[derive(Default)]
pub(super) struct Pairs(BTreeMap<(usize, &'static str, String), Holders>);

struct Holders {
    id: String,
    /// Whether the id is that of the agent: then the checkpoint belongs to its agent.
    is_agent: bool,
    rows: Vec<usize>,
}

impl Pairs {
    pub(super) fn add(
        &mut self,
        project: usize,
        number: usize,
        found: &Found<'_>,
        handoff: &Handoff,
    ) {
        let Some(id) = &found.id else { return };
        // Spellings of one id have one file.
        let file = ((found.format.layout)().file_name)(id);
        let name = file.unwrap_or_else(|_| id.to_string());
        let holders = self
            .0
            .entry((project, found.format.name, name))
            .or_insert_with(|| Holders {
                id: bounded::text(id.as_str()),
                is_agent: handoff.agent.as_deref() == Some(id.as_str()),
                rows: Vec::new(),
            });
        holders.rows.push(number);
    }

    pub(super) fn findings(&self, rows: &[Row]) -> Vec<Finding> {
        let several = self.0.values().filter(|holders| holders.rows.len() > 1);
        several
            .map(|holders| {
                let numbers = holders.rows.iter().filter_map(|number| rows.get(*number));
                let places = numbers.map(|row| row.place.to_string()).collect();
                let id = holders.id.clone();
                if holders.is_agent {
                    Finding::SameAgent { agent: id, places }
                } else {
                    Finding::SameKey { key: id, places }
                }
            })
            .collect()
    }
}
