//! A scan as it goes: the rows so far, and what is needed to compare them.

use std::collections::HashSet;
use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::pairs::Pairs;
use super::shared::SharedPaths;
use super::{
    Finding, Fleet, FleetOptions, LeftOut, NotScanned, Row, Source, Totals, WhyLeftOut,
    WhyNotScanned, planned,
};
use crate::checkpoint::Thresholds;
use crate::formats::Format;

/// A scan as it goes.
pub(super) struct Scan<'o> {
    pub(super) options: &'o FleetOptions,
    pub(super) now: DateTime<Utc>,
    /// Which of the sources is looked at.
    pub(super) project: usize,
    pub(super) findings: Vec<Finding>,
    pub(super) pairs: Pairs,
    pub(super) shared: SharedPaths,
    /// Folders that were looked into, so that two sources that overlap give each row once.
    pub(super) visited: HashSet<PathBuf>,
    rows: Vec<Row>,
    left_out: Vec<LeftOut>,
    not_scanned: Vec<NotScanned>,
    told: &'o mut dyn FnMut(usize),
}

pub(super) fn scan(
    sources: &[Source<'_>],
    options: &FleetOptions,
    now: DateTime<Utc>,
    told: &mut dyn FnMut(usize),
) -> Fleet {
    let mut scan = Scan {
        options,
        now,
        project: 0,
        findings: Vec::new(),
        pairs: Pairs::default(),
        shared: SharedPaths::default(),
        visited: HashSet::new(),
        rows: Vec::new(),
        left_out: Vec::new(),
        not_scanned: Vec::new(),
        told,
    };
    for (project, source) in sources.iter().enumerate() {
        scan.project = project;
        match source {
            Source::Folder(path) => scan.place(path),
            Source::Store {
                name,
                store,
                format,
            } => scan.store(name, *store, format.as_deref()),
        }
    }
    scan.finish()
}

impl Scan<'_> {
    /// Adds a row, and gives its number.
    pub(super) fn push(&mut self, row: Row) -> usize {
        self.rows.push(row);
        (self.told)(self.rows.len());
        self.rows.len() - 1
    }

    pub(super) fn leave_out(&mut self, what: impl ToString, why: WhyLeftOut) {
        let what = what.to_string();
        self.left_out.push(LeftOut { what, why });
    }

    pub(super) fn skip(&mut self, place: impl Into<PathBuf>, why: WhyNotScanned) {
        let place = place.into();
        self.not_scanned.push(NotScanned { place, why });
    }

    /// The thresholds that a format is judged by.
    pub(super) fn thresholds(&self, format: &Format) -> Thresholds {
        let own = self.options.thresholds.get(format.name).copied();
        own.or(self.options.thresholds_of_all)
            .unwrap_or_else(format.thresholds)
    }

    fn finish(mut self) -> Fleet {
        let taken_over = self.pairs.mark_taken_over(&mut self.rows, self.options);
        self.findings.extend(taken_over);
        self.findings.extend(self.pairs.findings(&self.rows));
        self.findings.extend(self.shared.findings(&self.rows));
        self.rows.sort_by(|one, other| one.place.cmp(&other.place));
        let missing = planned::missing(&self.rows, self.options);
        self.rows.extend(missing);
        Fleet {
            now: self.now,
            totals: Totals::of(&self.rows),
            rows: self.rows,
            findings: self.findings,
            left_out: self.left_out,
            not_scanned: self.not_scanned,
        }
    }
}
