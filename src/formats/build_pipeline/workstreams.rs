//! The workstreams of a build: each is in one bucket.

use super::BuildCheckpoint;

/// Where a workstream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Bucket {
    /// Done.
    Completed,
    /// Being worked on.
    InProgress,
    /// Not begun.
    Pending,
    /// Left out of this run.
    Dormant,
}

impl Bucket {
    /// The bucket in a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Bucket::Completed => "completed",
            Bucket::InProgress => "in progress",
            Bucket::Pending => "pending",
            Bucket::Dormant => "dormant",
        }
    }
}

impl BuildCheckpoint {
    /// The lists of workstreams by their names in the file.
    pub(super) fn lists(&self) -> [(Bucket, &'static str, &[String]); 5] {
        [
            (
                Bucket::Completed,
                "completed_workstreams",
                &self.completed_workstreams,
            ),
            (
                Bucket::InProgress,
                "in_progress_workstreams",
                &self.in_progress_workstreams,
            ),
            (
                Bucket::Pending,
                "pending_workstreams",
                &self.pending_workstreams,
            ),
            (
                Bucket::Dormant,
                "dormant_workstreams",
                self.dormant_workstreams.as_deref().unwrap_or_default(),
            ),
            (
                Bucket::Dormant,
                "skipped_workstreams",
                self.skipped_workstreams.as_deref().unwrap_or_default(),
            ),
        ]
    }

    /// The bucket that a workstream is in.
    #[must_use]
    pub fn bucket(&self, id: &str) -> Option<Bucket> {
        self.lists()
            .into_iter()
            .find(|(_, _, list)| list.iter().any(|item| item == id))
            .map(|(bucket, ..)| bucket)
    }

    /// The workstreams that are left out of this run, under either name.
    pub fn dormant(&self) -> impl Iterator<Item = &str> {
        let newer = self.dormant_workstreams.iter().flatten();
        let older = self.skipped_workstreams.iter().flatten();
        let twice = |id: &&String| {
            let newer = self.dormant_workstreams.as_ref();
            !newer.is_some_and(|newer| newer.contains(id))
        };
        newer.chain(older.filter(twice)).map(String::as_str)
    }

    /// The workstreams that are left: those in progress, then those that are pending.
    pub fn open_workstreams(&self) -> impl Iterator<Item = &str> {
        let begun = self.in_progress_workstreams.iter();
        begun.chain(&self.pending_workstreams).map(String::as_str)
    }

    /// Puts what is in progress back to the head of what is pending.
    pub(super) fn put_back(&mut self) {
        let mut pending = std::mem::take(&mut self.in_progress_workstreams);
        pending.retain(|id| !self.pending_workstreams.contains(id));
        pending.append(&mut self.pending_workstreams);
        self.pending_workstreams = pending;
    }
}
