//! The exit codes.

use agent_checkpoint::{Error, ErrorKind};

/// An exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; nothing to report.
    #[default]
    Done = 0,
    /// Done, with findings.
    Findings = 1,
    /// Could not: usage, missing file, I/O.
    Failed = 2,
    /// The input is corrupt.
    Corrupt = 3,
    /// Refused: the operation does not go with the checkpoint's state.
    Refused = 4,
    /// The checkpoint is not in the state that was expected.
    Conflict = 5,
}

impl Exit {
    /// The code for the system.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The graver of two codes, which wins when there are several files.
    pub(crate) fn and(self, other: Exit) -> Exit {
        if other.gravity() > self.gravity() {
            other
        } else {
            self
        }
    }

    fn gravity(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Findings => 1,
            Exit::Refused => 2,
            Exit::Conflict => 3,
            Exit::Corrupt => 4,
            Exit::Failed => 5,
        }
    }

    /// `Findings` if there are any.
    pub(crate) fn findings_if(any: bool) -> Exit {
        if any { Exit::Findings } else { Exit::Done }
    }

    /// The exit code of a library error.
    pub(crate) fn of(error: &Error) -> Exit {
        match error.kind() {
            ErrorKind::Corrupt(_)
            | ErrorKind::TooLarge { is_new: false, .. }
            | ErrorKind::NotRecoverable { .. } => Exit::Corrupt,
            ErrorKind::Conflict { .. } => Exit::Conflict,
            ErrorKind::NewerSchema { .. }
            | ErrorKind::NewerLayout { .. }
            | ErrorKind::Refused { .. }
            | ErrorKind::Transition { .. }
            | ErrorKind::WouldLose { .. }
            | ErrorKind::Claimed { .. }
            | ErrorKind::Fenced { .. }
            | ErrorKind::TakenOver { .. } => Exit::Refused,
            _ => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn the_gravest_wins() {
        let order = [2, 3, 5, 4, 1, 0];
        let all = [
            Exit::Done,
            Exit::Findings,
            Exit::Failed,
            Exit::Corrupt,
            Exit::Refused,
            Exit::Conflict,
        ];
        let rank = |exit: Exit| order.iter().position(|code| *code == exit.code()).unwrap();
        for one in all {
            for other in all {
                let gravest = if rank(one) <= rank(other) { one } else { other };
                assert_eq!(one.and(other), gravest);
            }
        }
    }
}
