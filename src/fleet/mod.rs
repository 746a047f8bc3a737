//! Many checkpoints of any formats, in one table: who works on what, how far it is, and who is alive.
//!
//! A scan looks at folders of any mix of formats and at stores, one document at a time, and keeps a
//! [`Row`] of each: what it needs in memory grows with the number of checkpoints, not with their size. It
//! holds no lock and creates nothing. Nothing makes it fail: what cannot be read is a row with its reason,
//! and every `.json` file that is no row is listed as left out.
//!
//! The verdicts are those of [`Liveness::judge`](crate::Liveness::judge), with the thresholds of each
//! format or those of the caller.
//!
//! # Examples
//!
//! ```
//! use agent_checkpoint::fleet::{Fleet, FleetOptions, Source};
//!
//! # let folder = tempfile::tempdir()?;
//! # let project = folder.path();
//! let options = FleetOptions::new().expecting("Secondary-A");
//! let fleet = Fleet::scan(&[Source::folder(project)], &options, chrono::Utc::now());
//! for row in fleet.rows() {
//!     println!("{}: {}", row.agent.as_deref().unwrap_or("—"), row.result());
//! }
//! // Secondary-A should have a checkpoint and has none.
//! assert_eq!(fleet.rows()[0].result(), "missing");
//! # std::io::Result::Ok(())
//! ```

mod bounded;
mod change;
mod claims;
mod doubt;
mod finding;
mod folder;
mod host;
mod left_out;
mod options;
mod pairs;
mod planned;
mod row;
mod scan;
mod shared;
mod stores;
mod survey;
mod totals;

use chrono::{DateTime, Utc};
use serde::Serialize;

pub use change::{Event, EventKind};
pub use finding::Finding;
pub use left_out::{LeftOut, NotScanned, WhyLeftOut, WhyNotScanned};
pub use options::{FleetOptions, IGNORED_FOLDERS, Planned, Source};
pub use row::{Next, Owner, Place, Row, RowState};
pub use totals::Totals;

use crate::checkpoint::{ResumeDecision, ResumePlan};

/// What a scan found.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Fleet {
    /// The time it was judged at.
    now: DateTime<Utc>,
    totals: Totals,
    rows: Vec<Row>,
    findings: Vec<Finding>,
    left_out: Vec<LeftOut>,
    not_scanned: Vec<NotScanned>,
}

impl Fleet {
    /// Looks at all sources, one after the other, and judges them at a time.
    #[must_use]
    pub fn scan(sources: &[Source<'_>], options: &FleetOptions, now: DateTime<Utc>) -> Fleet {
        Fleet::scan_with(sources, options, now, &mut |_| {})
    }

    /// As [`scan`](Fleet::scan), and tells after each file how many rows there are by then.
    #[must_use]
    pub fn scan_with(
        sources: &[Source<'_>],
        options: &FleetOptions,
        now: DateTime<Utc>,
        told: &mut dyn FnMut(usize),
    ) -> Fleet {
        scan::scan(sources, options, now, told)
    }

    /// The time it was judged at.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// The rows, in the order of their places; planned tasks and missing agents last.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// What does not go together.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The whole in numbers.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The `.json` files that are no rows, with the reason.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The folders that were not looked into, with the reason.
    #[must_use]
    pub fn not_scanned(&self) -> &[NotScanned] {
        &self.not_scanned
    }

    /// What can be resumed, by the formats' own plans unless others were
    /// [asked for](Fleet::judging_resumes): also after a question was answered. Whether its agent is alive is in
    /// the row.
    pub fn resumable(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_resumable())
    }

    /// Puts another judgement in the place of the formats' own plans, for every row that these would resume: most
    /// often that of [`Checkpoints::resume`](crate::Checkpoints::resume), which knows the files and the claims.
    /// `None` says that the row cannot be resumed.
    #[must_use]
    pub fn judging_resumes(mut self, mut judge: impl FnMut(&Row) -> Option<ResumePlan>) -> Fleet {
        for row in self.rows.iter_mut().filter(|row| row.is_resumable()) {
            row.next = judge(row).map(|plan| Next::of(&plan));
        }
        self.totals.resumable = self.resumable().count();
        self
    }

    /// The same with only the rows that can be resumed, and the findings as they are.
    #[must_use]
    pub fn only_resumable(mut self) -> Fleet {
        self.rows.retain(Row::is_resumable);
        self
    }

    /// Whether somebody has to look: an agent is late, stalled, stuck or missing, something could not be
    /// read or told, or there are findings.
    #[must_use]
    pub fn needs_attention(&self) -> bool {
        !self.findings.is_empty() || self.rows.iter().any(Row::needs_attention)
    }
}

impl Row {
    /// Whether the format's plan lets another agent go on from here.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        self.next
            .as_ref()
            .is_some_and(|next| next.decision < ResumeDecision::Restart)
    }
}
