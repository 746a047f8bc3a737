//! The whole in numbers.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::Serialize;

use super::{Row, RowState};
use crate::checkpoint::{Checkpoint, seconds};
use crate::formats::PipelineState;

/// The whole in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// How many rows there are.
    pub rows: usize,
    /// How many rows have each result.
    pub results: BTreeMap<&'static str, usize>,
    /// How many rows can be resumed.
    pub resumable: usize,
    /// How many parts of all tasks are done, where the tasks count them.
    pub done: u64,
    /// How many parts all tasks have.
    pub total: u64,
    /// How much is done, in whole percent: the average over the tasks that tell, a planned one with 0.
    /// A pipeline's own state is no task, for its stories are.
    pub percent: Option<u8>,
    /// How long the rest will take: the longest estimate of a task that is not finished, since agents work
    /// at the same time.
    #[serde(rename = "rest_seconds", serialize_with = "seconds")]
    pub rest: Option<TimeDelta>,
}

impl Totals {
    pub(super) fn of(rows: &[Row]) -> Totals {
        let mut totals = Totals {
            rows: rows.len(),
            ..Totals::default()
        };
        let (mut sum, mut told) = (0_u64, 0_u64);
        for row in rows {
            *totals.results.entry(row.result()).or_default() += 1;
            totals.resumable += usize::from(row.is_resumable());
            let is_taken_over = matches!(row.state, RowState::TakenOver { .. });
            if row.format == Some(PipelineState::FORMAT) || is_taken_over {
                continue;
            }
            let progress = &row.progress;
            totals.done = totals.done.saturating_add(progress.done.unwrap_or(0));
            totals.total = totals.total.saturating_add(progress.total.unwrap_or(0));
            let percent = match row.state {
                RowState::NotStarted | RowState::Claimed => Some(0),
                _ => progress.percent,
            };
            if let Some(percent) = percent {
                sum += u64::from(percent);
                told += 1;
            }
            totals.rest = totals.rest.max(progress.rest);
        }
        let average = sum.checked_div(told);
        totals.percent = average.and_then(|average| u8::try_from(average).ok());
        totals
    }

    /// How many rows have this result.
    #[must_use]
    pub fn count(&self, result: &str) -> usize {
        self.results.get(result).copied().unwrap_or(0)
    }
}
