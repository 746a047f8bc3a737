//! The states of a build and the transitions between them, and the numbers of its phases.

use super::{BuildCheckpoint, BuildStatus};
use crate::checkpoint::{Error, Result, Status};

impl BuildStatus {
    /// The status that another spelling means, such as `COMPLETE` or `in-progress`. The text in the file is not
    /// changed.
    #[must_use]
    pub fn understood(&self) -> Option<BuildStatus> {
        let BuildStatus::Other(text) = self else {
            return Some(self.clone());
        };
        let plain = text.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        match BuildStatus::from(plain.as_str()) {
            BuildStatus::Other(text) if ["completed", "done"].contains(&text.as_str()) => {
                Some(BuildStatus::Complete)
            }
            BuildStatus::Other(_) => None,
            known => Some(known),
        }
    }

    /// The states that can follow this one.
    fn next(&self) -> &'static [BuildStatus] {
        use BuildStatus::{Complete, Failed, InProgress, Paused};
        match self.understood() {
            Some(BuildStatus::Initialized) => &[InProgress],
            Some(InProgress) => &[Paused, Failed, Complete],
            Some(Paused) => &[InProgress, Complete],
            Some(Failed) => &[InProgress, Paused],
            Some(Complete | BuildStatus::Other(_)) | None => &[],
        }
    }
}

/// Whether a build is in this state, in any spelling.
pub(super) fn is(build: &BuildCheckpoint, status: &BuildStatus) -> bool {
    let understood = build.status.as_ref().and_then(BuildStatus::understood);
    understood.as_ref() == Some(status)
}

/// The state in terms common to all formats.
pub(super) fn common(status: Option<&BuildStatus>) -> Status {
    let Some(status) = status else {
        return Status::NotStarted;
    };
    match status.understood() {
        Some(BuildStatus::Initialized) => Status::NotStarted,
        Some(BuildStatus::InProgress) => Status::InProgress,
        Some(BuildStatus::Paused) => Status::Paused,
        Some(BuildStatus::Failed) => Status::Failed,
        Some(BuildStatus::Complete) => Status::Complete,
        Some(BuildStatus::Other(_)) | None => Status::Other(status.to_string()),
    }
}

/// Refuses a transition that the protocol does not have, unless it is forced.
pub(super) fn check(build: &BuildCheckpoint, to: &BuildStatus, force: bool) -> Result<()> {
    let allowed = build.status.as_ref().map_or(&[][..], BuildStatus::next);
    if force || allowed.contains(to) {
        return Ok(());
    }
    let from = build
        .status
        .as_ref()
        .map_or("no status", BuildStatus::as_str);
    Err(Error::transition(from, to.as_str(), allowed))
}

/// A number as text, without a fraction if it is whole.
pub(super) fn plain(number: f64) -> String {
    // `Display` prints a whole `f64` without a fraction.
    number.to_string()
}

/// The number of the phase in a text such as `2` or `Phase 2`.
pub(super) fn phase(text: &str) -> Option<f64> {
    let text = text.trim();
    let head = text
        .get(..5)
        .filter(|head| head.eq_ignore_ascii_case("phase"));
    let rest = head.map_or(text, |head| {
        text[head.len()..].trim_start_matches([' ', '-', '_', ':'])
    });
    let number: f64 = rest.parse().ok()?;
    // A number from 2^53 on may change when it is written.
    (0.0..9_007_199_254_740_992.0)
        .contains(&number)
        .then_some(number)
}

#[cfg(test)]
mod tests {
    use super::phase;

    #[test]
    fn a_phase_is_a_number_with_or_without_the_word() {
        assert_eq!(phase("2"), Some(2.0));
        assert_eq!(phase(" Phase 2 "), Some(2.0));
        assert_eq!(phase("phase-2.5"), Some(2.5));
        for none in [
            "",
            "phase",
            "two",
            "-1",
            "inf",
            "NaN",
            "9007199254740993",
            "Phäse 2",
        ] {
            assert_eq!(phase(none), None, "{none}");
        }
    }
}
