//! The adversarial review of a plan.

use super::{AdversarialReview, BuildCheckpoint, Verdict};
use crate::checkpoint::{Error, Result};

/// How often a plan may be reviewed.
pub(super) const MOST_ATTEMPTS: f64 = 2.0;

impl AdversarialReview {
    /// A review with a verdict, at the first attempt and without findings.
    #[must_use]
    pub fn new(verdict: Verdict) -> Self {
        AdversarialReview {
            verdict: Some(verdict),
            p0_count: Some(0.0),
            p1_count: Some(0.0),
            attempt: Some(1.0),
            ..AdversarialReview::default()
        }
    }
}

impl BuildCheckpoint {
    /// Records what the review came to, in place of an earlier attempt.
    ///
    /// # Errors
    ///
    /// Refused when the attempt is not 1 or 2, when a count is below 0, and when a verdict is overridden
    /// without a reason. The checkpoint is then unchanged.
    pub fn record_review(&mut self, review: AdversarialReview) -> Result<()> {
        if !review
            .attempt
            .is_none_or(|attempt| (1.0..=MOST_ATTEMPTS).contains(&attempt))
        {
            return Err(Error::refused("a plan is reviewed at most twice"));
        }
        if [review.p0_count, review.p1_count]
            .into_iter()
            .flatten()
            .any(|count| count.is_nan() || count < 0.0)
        {
            return Err(Error::refused("a count of findings is 0 or more"));
        }
        let overridden = review.verdict == Some(Verdict::Overridden);
        let is_blank = |reason: &String| reason.trim().is_empty();
        if overridden && review.override_reason.as_ref().is_none_or(is_blank) {
            return Err(Error::refused("say why the verdict is overridden"));
        }
        self.adversarial_review = Some(review);
        Ok(())
    }
}
