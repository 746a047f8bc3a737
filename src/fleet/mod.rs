//! Judges many checkpoints of any formats together: which agent works on what, how far it is, and whether it is alive.
//!
//! [`Fleet::scan`] reads folders and stores with any mix of formats, a few documents at a time, and keeps a [`Row`] of
//! each. Memory use grows with the number of checkpoints, not with their size. A scan takes no lock and writes nothing.
//! It never fails: an unreadable checkpoint becomes a row with the reason, and a `.json` file that is no row is
//! [skipped](Fleet::skipped) with a reason.
//!
//! The verdicts are those of [`Liveness::judge`](crate::liveness::Liveness::judge), with the thresholds of each format
//! or of the caller. How a fleet is displayed is up to the program: `ckpt status` draws its tables from these rows.
//!
//! # Examples
//!
//! ```
//! use agent_checkpoint::fleet::{Fleet, FleetOptions, Source};
//!
//! # let folder = tempfile::tempdir()?;
//! # let project = folder.path();
//! let options = FleetOptions::new().with_expected("Secondary-A");
//! let fleet = Fleet::scan(&[Source::folder(project)], &options, chrono::Utc::now());
//! for row in fleet.rows() {
//!     println!("{}: {}", row.agent.as_deref().unwrap_or("—"), row.result());
//! }
//! // Secondary-A should have a checkpoint and has none.
//! assert_eq!(fleet.rows()[0].result(), "missing");
//! # std::io::Result::Ok(())
//! ```

mod again;
mod beside;
mod bounded;
mod compare;
mod event;
mod finding;
mod folder;
mod inspect;
mod kept;
mod options;
mod parallel;
mod retention;
mod row;
mod scan;
mod skipped;
mod stores;

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

pub use event::{Event, EventKind};
pub use finding::Finding;
pub use options::{FleetOptions, Source};
pub use retention::{Expired, Expiry, Retention};
pub use row::{ClaimHolder, Place, PlanSummary, Row, RowState};
pub use skipped::{SkipReason, Skipped};

use scan::{Before, Scan};

use crate::checkpoint::{ResumePlan, seconds};

/// The result of a scan.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Fleet {
    now: DateTime<Utc>,
    totals: Totals,
    rows: Vec<Row>,
    findings: Vec<Finding>,
    #[serde(flatten, serialize_with = "skipped::as_two_lists")]
    skipped: Vec<Skipped>,
    /// The options, which a later scan uses again.
    #[serde(skip)]
    options: FleetOptions,
}

impl Fleet {
    /// Reads all sources, one after the other, and judges their checkpoints at the time `now`.
    #[must_use]
    pub fn scan(sources: &[Source<'_>], options: &FleetOptions, now: DateTime<Utc>) -> Fleet {
        Fleet::scan_with(sources, options, now, &mut |_| {})
    }

    /// Like [`scan`](Fleet::scan), and calls `on_row` after each row with the number of rows so far.
    ///
    /// # Examples
    ///
    /// ```
    /// # use agent_checkpoint::fleet::{Fleet, FleetOptions, Source};
    /// # let folder = tempfile::tempdir()?;
    /// # let now = chrono::Utc::now();
    /// let mut progress = |rows: usize| println!("{rows} checkpoints");
    /// let sources = [Source::folder(folder.path())];
    /// let fleet = Fleet::scan_with(&sources, &FleetOptions::new(), now, &mut progress);
    /// assert_eq!(fleet.totals().rows, 0);
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn scan_with(
        sources: &[Source<'_>],
        options: &FleetOptions,
        now: DateTime<Utc>,
        on_row: &mut dyn FnMut(usize),
    ) -> Fleet {
        Fleet::scan_since(None, sources, options, now, on_row)
    }

    /// Scans the same sources again with the same options, and reads only what changed since this scan.
    ///
    /// A file is not read again if it, its claim file and its ledger have the same size, times and inode as before, and
    /// if they had not changed in the very clock tick in which this scan read them. The result is therefore that of a
    /// full scan, except that a file of equal size whose times were set back by hand looks unchanged. In a
    /// [store](Source::Store) only the versions of its keys ([`Listed`](crate::store::Listed)) and the changed
    /// documents are read; a store without versions is read in full.
    ///
    /// # Examples
    ///
    /// ```
    /// # use agent_checkpoint::fleet::{Fleet, FleetOptions, Source};
    /// # let folder = tempfile::tempdir()?;
    /// let sources = [Source::folder(folder.path())];
    /// let first = Fleet::scan(&sources, &FleetOptions::new(), chrono::Utc::now());
    /// let second = first.rescan(&sources, chrono::Utc::now());
    /// assert!(second.changes_since(&first).is_empty());
    /// # std::io::Result::Ok(())
    /// ```
    #[must_use]
    pub fn rescan(&self, sources: &[Source<'_>], now: DateTime<Utc>) -> Fleet {
        let before = Before::of(self);
        // If the clock was set back, changed files may have times from before this scan.
        let before = Some(&before).filter(|_| now >= self.now);
        Fleet::scan_since(before, sources, &self.options, now, &mut |_| {})
    }

    fn scan_since(
        before: Option<&Before<'_>>,
        sources: &[Source<'_>],
        options: &FleetOptions,
        now: DateTime<Utc>,
        on_row: &mut dyn FnMut(usize),
    ) -> Fleet {
        let mut scan = Scan::new(options, now, before);
        // Sources may overlap; each folder counts once.
        let mut visited = HashSet::new();
        for (project, source) in sources.iter().enumerate() {
            scan.project = project;
            match source {
                Source::Folder(path) => scan.path(path, &mut visited, on_row),
                Source::Store {
                    name,
                    store,
                    format,
                } => scan.store(name, *store, format.as_deref(), on_row),
            }
        }
        scan.finish()
    }

    /// The time for which the fleet was judged.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// The rows, ordered by place; planned tasks and missing agents come last.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The contradictions that the scan found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The rows summed up in numbers.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The `.json` files and keys that are no rows, and the folders and stores that were not read, each with the
    /// reason.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The rows that another agent can resume, according to the plans of their formats or of
    /// [`judge_resumes`](Fleet::judge_resumes). This does not consider whether the agent of a row is still alive.
    pub fn resumable(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_resumable())
    }

    /// The rows that another agent may resume now: those that are [resumable](Fleet::resumable), and those whose wait
    /// has ended by `now`, except those that a claim keeps others out of.
    ///
    /// `now` must not be before the time of the scan. Only the end of a wait is judged at `now`; everything else is as
    /// the scan found it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use agent_checkpoint::fleet::{Fleet, FleetOptions};
    /// # let fleet = Fleet::scan(&[], &FleetOptions::new(), chrono::Utc::now());
    /// for row in fleet.due(chrono::Utc::now()) {
    ///     println!("{} may go on", row.place);
    /// }
    /// ```
    pub fn due(&self, now: DateTime<Utc>) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.is_due(now))
    }

    /// Replaces the plan of every resumable row; `None` means that it cannot be resumed.
    ///
    /// A scan uses the plan of the format alone. [`Checkpoints::resume`](crate::Checkpoints::resume) also checks the
    /// files and the claims.
    ///
    /// # Examples
    ///
    /// ```
    /// # use agent_checkpoint::fleet::{Fleet, FleetOptions};
    /// # let fleet = Fleet::scan(&[], &FleetOptions::new(), chrono::Utc::now());
    /// let fleet = fleet.judge_resumes(|_row| None);
    /// assert_eq!(fleet.totals().resumable, 0);
    /// ```
    #[must_use]
    pub fn judge_resumes(mut self, mut judge: impl FnMut(&Row) -> Option<ResumePlan>) -> Fleet {
        for row in self.rows.iter_mut().filter(|row| row.is_resumable()) {
            row.next = judge(row).map(|plan| PlanSummary::of(&plan));
            // A later scan uses the plan of the format again.
            row.kept = None;
        }
        self.totals.resumable = self.resumable().count();
        self
    }

    /// Keeps only the rows that can be resumed; totals and findings stay.
    #[must_use]
    pub fn only_resumable(mut self) -> Fleet {
        self.rows.retain(Row::is_resumable);
        self
    }

    /// Keeps only the rows that are [due](Fleet::due) at the time of the scan; totals and findings stay.
    #[must_use]
    pub fn only_due(mut self) -> Fleet {
        let now = self.now;
        self.rows.retain(|row| row.is_due(now));
        self
    }

    /// Whether a person has to act: an agent is late, stalled, stuck or missing, a file could not be read or judged,
    /// or there are findings.
    #[must_use]
    pub fn needs_attention(&self) -> bool {
        !self.findings.is_empty() || self.rows.iter().any(Row::needs_attention)
    }
}

/// The rows of a fleet summed up in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// How many rows there are.
    pub rows: usize,
    /// How many rows have each result.
    pub results: BTreeMap<&'static str, usize>,
    /// How many rows can be resumed.
    pub resumable: usize,
    /// How many steps of all tasks are done, over the tasks that count them.
    pub done: u64,
    /// How many steps all tasks have, over the tasks that count them.
    pub total: u64,
    /// How much is done, in whole percent: the average over the tasks that state it, planned ones with 0. A pipeline's
    /// state does not count as a task, since its stories do.
    pub percent: Option<u8>,
    /// How long the rest will take: the longest estimate of all tasks, since agents work in parallel.
    #[serde(rename = "rest_seconds", serialize_with = "seconds")]
    pub rest: Option<TimeDelta>,
}

impl Totals {
    fn of(rows: &[Row]) -> Totals {
        let mut totals = Totals {
            rows: rows.len(),
            ..Totals::default()
        };
        let (mut sum, mut counted) = (0_u64, 0_u64);
        for row in rows {
            *totals.results.entry(row.result()).or_default() += 1;
            totals.resumable += usize::from(row.is_resumable());
            let is_taken_over = matches!(row.state, RowState::TakenOver { .. });
            if !row.is_task || is_taken_over {
                continue;
            }
            let progress = &row.progress;
            totals.done = totals.done.saturating_add(progress.done.unwrap_or(0));
            totals.total = totals.total.saturating_add(progress.total.unwrap_or(0));
            totals.rest = totals.rest.max(progress.rest);
            let percent = match row.state {
                RowState::NotStarted | RowState::Claimed => Some(0),
                _ => progress.percent,
            };
            if let Some(percent) = percent {
                sum += u64::from(percent);
                counted += 1;
            }
        }
        let average = sum.checked_div(counted);
        totals.percent = average.and_then(|average| u8::try_from(average).ok());
        totals
    }

    /// How many rows have this result.
    #[must_use]
    pub fn count(&self, result: &str) -> usize {
        self.results.get(result).copied().unwrap_or(0)
    }
}
