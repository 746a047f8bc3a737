//! The workstreams of a build: each is in one bucket.

use super::{BuildCheckpoint, artifacts, gates};

/// The list that a workstream is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bucket {
    /// Done.
    Completed,
    /// Being worked on.
    InProgress,
    /// Not begun.
    Pending,
    /// Not part of this run.
    Dormant,
}

impl Bucket {
    /// The name of the bucket in a sentence.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Bucket::Completed => "completed",
            Bucket::InProgress => "in progress",
            Bucket::Pending => "pending",
            Bucket::Dormant => "dormant",
        }
    }
}

impl BuildCheckpoint {
    /// The lists of workstreams with their names in the file.
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

    /// The bucket that a workstream is in. If it is in several, which breaks a rule, the first.
    pub(super) fn bucket(&self, id: &str) -> Option<Bucket> {
        self.buckets_of(id).next()
    }

    /// All buckets that a workstream is in, each once.
    pub(super) fn buckets_of(&self, id: &str) -> impl Iterator<Item = Bucket> {
        let mut buckets: Vec<Bucket> = self
            .lists()
            .into_iter()
            .filter(|(_, _, list)| list.iter().any(|item| item == id))
            .map(|(bucket, ..)| bucket)
            .collect();
        buckets.dedup();
        buckets.into_iter()
    }

    pub(super) fn is_in(&self, id: &str, bucket: Bucket) -> bool {
        self.buckets_of(id).any(|of| of == bucket)
    }

    /// Removes a workstream from the dormant ones, under either name, with the artifact that marked it as dormant.
    pub(super) fn wake(&mut self, id: &str) {
        let lists = [&mut self.dormant_workstreams, &mut self.skipped_workstreams];
        for list in lists.into_iter().flatten() {
            list.retain(|dormant| dormant != id);
        }
        artifacts::forget_dormant(self, id);
    }

    /// The workstreams that are not part of this run, under either name.
    pub fn dormant(&self) -> impl Iterator<Item = &str> {
        let newer = self.dormant_workstreams.iter().flatten();
        let older = self.skipped_workstreams.iter().flatten();
        let twice = |id: &&String| {
            let newer = self.dormant_workstreams.as_ref();
            !newer.is_some_and(|newer| newer.contains(id))
        };
        newer.chain(older.filter(twice)).map(String::as_str)
    }

    /// The workstreams that are left: those in progress, then the failed one if no bucket has it, then the pending
    /// ones.
    pub fn open_workstreams(&self) -> impl Iterator<Item = &str> {
        let begun = self.in_progress_workstreams.iter().map(String::as_str);
        begun
            .chain(self.failed_workstream())
            .chain(self.pending_workstreams.iter().map(String::as_str))
    }

    /// The workstream that failed, if no bucket has it. The protocol's own example of a failure has it in none; it
    /// still has to be done.
    #[must_use]
    pub fn failed_workstream(&self) -> Option<&str> {
        let id = self.error.as_ref()?.workstream.as_deref()?;
        let is_lost = gates::is_workstream(id) && self.bucket(id).is_none();
        is_lost.then_some(id)
    }

    /// The number of done workstreams, and of all but the dormant ones.
    pub(super) fn counts(&self) -> (u64, u64) {
        let done = self.completed_workstreams.len();
        let whole = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        (whole(done), whole(done + self.open_workstreams().count()))
    }

    /// Moves workstreams in progress back to the head of the pending ones.
    pub(super) fn put_back(&mut self) {
        let failed = self.failed_workstream().map(str::to_owned);
        let mut pending = std::mem::take(&mut self.in_progress_workstreams);
        pending.extend(failed);
        pending.retain(|id| !self.pending_workstreams.contains(id));
        pending.append(&mut self.pending_workstreams);
        self.pending_workstreams = pending;
    }
}
