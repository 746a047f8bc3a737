//! Claims decide which agent may write; fences keep former owners out.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{Error, ErrorKind, ProcessId, Result};

/// The number of a claim. A writer states it with each write.
///
/// Each later claim of a key has a greater number, whatever happened to the earlier ones. So a writer that was
/// taken for dead and wakes up can be told from its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fence(u64);

impl Fence {
    /// The fence with this number, as printed by a claim.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Fence(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Fence {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        text.parse().map(Fence)
    }
}

/// A claim on a checkpoint, as a store records it.
///
/// A store keeps the last claim of each key forever, even after it expired or was released, because the next
/// fence must be greater. Of a forgotten task only the [fence](Claim::only_fence) remains. A store reads and
/// writes this record in one atomic step per key, and lets these functions decide: [`Claim::granted`],
/// [`Claim::renewed`], [`Claim::given_back`], [`Claim::check`], [`Claim::check_forget`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Claim {
    /// The owner.
    pub owner: String,
    /// The number that the owner states with each write.
    pub fence: Fence,
    /// When it began.
    pub since: DateTime<Utc>,
    /// When it expires; at exactly this time it has expired.
    pub expires: DateTime<Utc>,
    /// Whether it was given back.
    #[serde(default)]
    pub released: bool,
    /// The agent part of the owner. A record of version 0.1 has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The process that works for the owner, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessId>,
}

/// The request for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimRequest {
    /// The requesting owner: an agent and its session, so that two runs of one agent are two owners.
    pub owner: String,
    /// How long the claim lasts unless it is renewed.
    pub time_to_live: Duration,
    /// Whether to take the task from an owner whose claim is still valid.
    pub take_over: bool,
    /// The agent, without its session.
    pub agent: Option<String>,
    /// The process that works for it.
    pub process: Option<ProcessId>,
}

impl ClaimRequest {
    /// Asks for a claim that lasts for `time_to_live` unless it is renewed.
    pub fn new(owner: impl Into<String>, time_to_live: Duration) -> Self {
        ClaimRequest {
            owner: owner.into(),
            time_to_live,
            take_over: false,
            agent: None,
            process: None,
        }
    }

    /// Names the agent. Once the process that its claim names is gone, the same agent may take the claim back
    /// at once, in any session.
    #[must_use]
    pub fn of_agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Names the process that works on the task. Without one the claim lasts until it expires or is released.
    #[must_use]
    pub fn in_process(mut self, process: ProcessId) -> Self {
        self.process = Some(process);
        self
    }

    /// Takes the task even from an owner whose claim is still valid. This is for a supervisor that knows that
    /// the owner is dead.
    #[must_use]
    pub fn taking_over(mut self) -> Self {
        self.take_over = true;
        self
    }
}

/// Why a fence is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fenced {
    /// Another owner has claimed the task since.
    TakenOver {
        /// The other owner.
        by: String,
    },
    /// The claim was given back.
    Released {
        /// The owner that gave it back.
        owner: String,
    },
    /// The claim expired, but no other owner has the task yet, so it can be renewed.
    Expired {
        /// The owner of the claim.
        owner: String,
        /// When it expired.
        at: DateTime<Utc>,
    },
    /// This store has no record of such a claim.
    Unknown,
}

impl fmt::Display for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fenced::TakenOver { by } => write!(
                f,
                "{by} has a later claim on the task; stop, and leave the task to {by}"
            ),
            Fenced::Released { owner } => write!(
                f,
                "{owner} released the claim; claim the task again to continue"
            ),
            Fenced::Expired { owner, at } => write!(
                f,
                "the claim of {owner} expired at {}; renew it to continue",
                stamp(*at)
            ),
            Fenced::Unknown => {
                f.write_str("the store has no claim with this fence; claim the task first")
            }
        }
    }
}

impl Claim {
    /// Whether the claim is valid at `now` and so keeps other owners out.
    #[must_use]
    pub fn stands(&self, now: DateTime<Utc>) -> bool {
        !self.released && now < self.expires
    }

    /// Whether an earlier process of this agent made the claim and is gone. A process counts as alive unless it
    /// is known to be gone.
    #[must_use]
    pub fn is_left_by_dead(&self, agent: &str) -> bool {
        let is_gone = self.process.as_ref().is_some_and(ProcessId::is_gone);
        self.agent.as_deref() == Some(agent) && is_gone
    }

    /// The claim that a request is granted, given the last claim of the key.
    ///
    /// The owner of a valid claim gets the same claim again, extended to at least the time it asks for. The
    /// first fence of a key is the time in milliseconds since 1970, so fences keep growing even if the store's
    /// record of them is removed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Claimed`] when another owner's claim is valid and the request does not take it over, unless
    /// the claim belongs to the same agent and its process is known to be gone; [`ErrorKind::Refused`] for an
    /// owner that is blank or has a control character, and for a claim that lasts for no time or for longer
    /// than the calendar reaches.
    pub fn granted(
        last: Option<&Claim>,
        request: &ClaimRequest,
        now: DateTime<Utc>,
    ) -> Result<Claim> {
        let owner = request.owner.trim();
        if owner.is_empty() || owner.chars().any(char::is_control) {
            return Err(Error::refused(
                "a claim needs the name of its owner, without control characters",
            ));
        }
        let expires = end(now, request.time_to_live)?;
        let first = Fence(u64::try_from(now.timestamp_millis()).unwrap_or(0).max(1));
        let claim = |fence, since, expires| Claim {
            owner: owner.to_owned(),
            fence,
            since,
            expires,
            released: false,
            agent: request.agent.clone(),
            process: request.process.clone(),
        };
        let may_take = |last: &Claim| {
            let agent = request.agent.as_deref();
            request.take_over || agent.is_some_and(|agent| last.is_left_by_dead(agent))
        };
        match last {
            None => Ok(claim(first, now, expires)),
            Some(last) if last.stands(now) && last.owner == owner && !request.take_over => {
                Ok(claim(last.fence, last.since, last.expires.max(expires)))
            }
            Some(last) if last.stands(now) && last.owner != owner && !may_take(last) => {
                Err(Error::new(ErrorKind::Claimed {
                    owner: last.owner.clone(),
                    until: last.expires,
                }))
            }
            Some(last) => {
                let next = last.fence.0.checked_add(1).ok_or_else(|| {
                    Error::refused(
                        "its record of claims has the greatest possible fence, so the record must be damaged: once \
                         no agent works on the task, remove the record and claim the task again",
                    )
                })?;
                Ok(claim(Fence(next).max(first), now, expires))
            }
        }
    }

    /// The remains of a claim whose task was forgotten or copied from another store: only the fence, because
    /// the next one must be greater. It counts as released, has no owner, and its fence permits no write.
    #[must_use]
    pub fn only_fence(fence: Fence) -> Claim {
        Claim {
            owner: String::new(),
            fence,
            since: DateTime::UNIX_EPOCH,
            expires: DateTime::UNIX_EPOCH,
            released: true,
            agent: None,
            process: None,
        }
    }

    /// Whether only the fence remains.
    #[must_use]
    pub fn is_only_fence(&self) -> bool {
        self.owner.is_empty()
    }

    /// Whether a forget with the fence `given` is allowed. An interrupted forget may have left only the fence
    /// of the claim; a new one with the same fence may finish it.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Claim::check).
    pub fn check_forget(
        last: Option<&Claim>,
        given: Option<Fence>,
        now: DateTime<Utc>,
    ) -> Result<()> {
        match last {
            Some(last) if last.is_only_fence() && given == Some(last.fence) => Ok(()),
            last => Claim::check(last, given, now),
        }
    }

    /// The error for a fence of a key that never had a claim.
    #[must_use]
    pub fn unknown(fence: Fence) -> Error {
        fenced(fence, Fenced::Unknown)
    }

    /// The claim, extended from `now` on. An expired claim can be renewed as long as no other owner has claimed
    /// the task.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] when `fence` is not the fence of this claim, or the claim was given back.
    pub fn renewed(
        &self,
        fence: Fence,
        time_to_live: Duration,
        now: DateTime<Utc>,
    ) -> Result<Claim> {
        self.expect_unreleased(fence)?;
        Ok(Claim {
            expires: self.expires.max(end(now, time_to_live)?),
            ..self.clone()
        })
    }

    /// The claim, marked as released. Releasing it again changes nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Fenced`] when another owner has claimed the task since.
    pub fn given_back(&self, fence: Fence) -> Result<Claim> {
        match self.expect_unreleased(fence) {
            Err(_) if self.fence == fence => {}
            checked => checked?,
        }
        Ok(Claim {
            released: true,
            ..self.clone()
        })
    }

    /// Whether a write with the fence `given` is allowed, where `last` is the last claim of the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Claimed`] for a write without a fence while a claim is valid; [`ErrorKind::Fenced`] for a
    /// fence that is not the one of the last claim, or whose claim expired or was released.
    pub fn check(last: Option<&Claim>, given: Option<Fence>, now: DateTime<Utc>) -> Result<()> {
        match (last, given) {
            (None, None) => Ok(()),
            (None, Some(fence)) => Err(fenced(fence, Fenced::Unknown)),
            (Some(last), None) if last.stands(now) => Err(Error::new(ErrorKind::Claimed {
                owner: last.owner.clone(),
                until: last.expires,
            })),
            (Some(_), None) => Ok(()),
            (Some(last), Some(fence)) => {
                last.expect_unreleased(fence)?;
                if last.stands(now) {
                    return Ok(());
                }
                Err(fenced(
                    fence,
                    Fenced::Expired {
                        owner: last.owner.clone(),
                        at: last.expires,
                    },
                ))
            }
        }
    }

    fn expect_unreleased(&self, fence: Fence) -> Result<()> {
        if self.fence != fence || self.is_only_fence() {
            let why = if fence < self.fence && !self.is_only_fence() {
                Fenced::TakenOver {
                    by: self.owner.clone(),
                }
            } else {
                Fenced::Unknown
            };
            return Err(fenced(fence, why));
        }
        if self.released {
            return Err(fenced(
                fence,
                Fenced::Released {
                    owner: self.owner.clone(),
                },
            ));
        }
        Ok(())
    }
}

fn fenced(fence: Fence, why: Fenced) -> Error {
    Error::new(ErrorKind::Fenced {
        fence: fence.number(),
        why,
    })
}

/// When a claim that begins now expires.
fn end(now: DateTime<Utc>, time_to_live: Duration) -> Result<DateTime<Utc>> {
    if time_to_live.is_zero() {
        return Err(Error::refused(
            "the duration of a claim must be more than zero",
        ));
    }
    TimeDelta::from_std(time_to_live)
        .ok()
        .and_then(|live| now.checked_add_signed(live))
        .ok_or_else(|| Error::refused("the duration of a claim is too long"))
}

/// A time as text for a sentence.
pub(crate) fn stamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn ask(owner: &str) -> ClaimRequest {
        ClaimRequest::new(owner, Duration::from_secs(60))
    }

    fn why(error: &Error) -> Fenced {
        match error.kind() {
            ErrorKind::Fenced { why, .. } => why.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_claim_is_one_for_its_owner_and_keeps_others_out_until_it_runs_out() {
        let first = Claim::granted(None, &ask("a"), at(0)).unwrap();
        let again = Claim::granted(Some(&first), &ask("a"), at(10)).unwrap();
        assert_eq!((again.fence, again.since), (first.fence, first.since));
        assert_eq!(again.expires, at(70));
        let refused = Claim::granted(Some(&again), &ask("b"), at(69)).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Claimed { owner, until }
            if owner == "a" && *until == at(70)));
        let taken = Claim::granted(Some(&again), &ask("b"), at(70)).unwrap();
        assert!(taken.fence > again.fence);
        let supervisor = ask("c").taking_over();
        let forced = Claim::granted(Some(&taken), &supervisor, at(71)).unwrap();
        assert!(forced.fence > taken.fence);
    }

    #[test]
    fn an_old_fence_never_opens_again() {
        let now = at(0);
        let first = Claim::granted(None, &ask("a"), now).unwrap();
        assert!(Claim::check(Some(&first), Some(first.fence), now).is_ok());
        assert!(Claim::check(Some(&first), None, now).is_err());

        // Expired: the owner must renew, and other writers without a claim may write.
        let late = at(60);
        let expired = Claim::check(Some(&first), Some(first.fence), late).unwrap_err();
        assert!(matches!(why(&expired), Fenced::Expired { owner, .. } if owner == "a"));
        assert!(Claim::check(Some(&first), None, late).is_ok());
        let renewed = first.renewed(first.fence, Duration::from_secs(60), late);
        assert!(Claim::check(Some(&renewed.unwrap()), Some(first.fence), late).is_ok());

        // Released.
        let released = first.given_back(first.fence).unwrap();
        let refused = Claim::check(Some(&released), Some(first.fence), now).unwrap_err();
        assert!(matches!(why(&refused), Fenced::Released { owner } if owner == "a"));
        assert_eq!(released.given_back(first.fence).unwrap(), released);
        assert!(
            released
                .renewed(first.fence, Duration::from_secs(60), now)
                .is_err()
        );

        // Taken over; the old fence stays refused after the new owner releases.
        let second = Claim::granted(Some(&released), &ask("b"), now).unwrap();
        let second_released = second.given_back(second.fence).unwrap();
        for last in [&second, &second_released] {
            let refused = Claim::check(Some(last), Some(first.fence), now).unwrap_err();
            assert!(matches!(why(&refused), Fenced::TakenOver { by } if by == "b"));
            assert!(refused.to_string().contains('b'), "{refused}");
            assert!(last.given_back(first.fence).is_err());
        }
        assert!(
            Claim::granted(Some(&second_released), &ask("a"), now)
                .unwrap()
                .fence
                > second.fence
        );
    }

    #[test]
    fn a_removed_record_does_not_bring_an_old_fence_back() {
        let first = Claim::granted(None, &ask("a"), at(0)).unwrap();
        let anew = Claim::granted(None, &ask("b"), at(1)).unwrap();
        assert!(anew.fence > first.fence);
        let refused = Claim::check(None, Some(first.fence), at(1)).unwrap_err();
        assert_eq!(why(&refused), Fenced::Unknown);
        // A clock that is set back does not make fences shrink.
        let back = Claim::granted(
            Some(&anew.given_back(anew.fence).unwrap()),
            &ask("c"),
            at(-500),
        );
        assert!(back.unwrap().fence > anew.fence);
    }

    /// A record of version 0.1 names no process, and a program of version 0.1 can read a record with one.
    #[test]
    fn a_record_with_and_without_a_process_is_read_by_either_version() {
        #[derive(serde::Deserialize, serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Old {
            owner: String,
            fence: u64,
            since: DateTime<Utc>,
            expires: DateTime<Utc>,
            #[serde(default)]
            released: bool,
        }
        let request = ask("dev, session 1").of_agent("dev");
        let request = request.in_process(super::ProcessId::current());
        let claim = Claim::granted(None, &request, at(0)).unwrap();
        let text = serde_json::to_string(&claim).unwrap();
        let old: Old = serde_json::from_str(&text).unwrap();
        assert_eq!((&*old.owner, old.fence), (&*claim.owner, claim.fence.0));
        let text = serde_json::to_string(&old).unwrap();
        let read: Claim = serde_json::from_str(&text).unwrap();
        assert_eq!((read.fence, &read.process), (claim.fence, &None));
        assert!(!read.is_left_by_dead("dev"));
        assert!(
            Claim::granted(Some(&read), &ask("dev, session 2").of_agent("dev"), at(1)).is_err()
        );
    }

    #[test]
    fn an_owner_has_a_name_and_a_claim_lasts() {
        for owner in ["", "  ", "a\nb"] {
            assert!(Claim::granted(None, &ask(owner), at(0)).is_err());
        }
        for live in [Duration::ZERO, Duration::MAX] {
            assert!(Claim::granted(None, &ClaimRequest::new("a", live), at(0)).is_err());
        }
    }
}
