//! The function that decides whether an agent is alive.

use crate::quoted;
use chrono::{DateTime, TimeDelta, Utc};

use super::{Activity, Crossed, Limit, Liveness, Pulse, Signal, SignalKind, Thresholds};
use crate::checkpoint::Timestamp;

impl Liveness {
    /// Judges whether the agent of a checkpoint is alive at the time `now`.
    ///
    /// 1. An agent that states that it is finished, blocked or waiting gets that verdict; an unknown status
    ///    gives [`Liveness::Unknown`].
    /// 2. A heartbeat or progress stamp that is ahead of `now` by more than the tolerance gives
    ///    [`Liveness::ClockSuspect`].
    /// 3. The last signal is the later one of heartbeat and progress. The agent is late once that signal is as
    ///    old as [`Thresholds::late`] or twice the declared interval, whichever is longer; it is stalled at
    ///    [`Thresholds::stalled`] or four times the interval. It is neither before the declared next time or
    ///    before the end of a declared busy time. A limit counts as crossed as soon as it is reached.
    /// 4. An agent that is neither late nor stalled is stuck when its last progress is as old as
    ///    [`Thresholds::stuck`]. This applies only to formats that have a heartbeat apart from progress, and
    ///    not while the agent is busy.
    ///
    /// # Examples
    ///
    /// ```
    /// use agent_checkpoint::liveness::{Pulse, Thresholds};
    /// use agent_checkpoint::liveness::Liveness;
    /// use agent_checkpoint::Timestamp;
    ///
    /// let pulse = Pulse::default().with_progress(Some(Timestamp::parse("2026-03-02T08:00:00Z")));
    /// let at = |text| Timestamp::parse(text).time().expect("a time").to_utc();
    /// let judge = |now| Liveness::judge(&pulse, &Thresholds::default(), at(now)).as_str();
    /// assert_eq!(judge("2026-03-02T08:29:59Z"), "active");
    /// assert_eq!(judge("2026-03-02T08:30:00Z"), "late");
    /// assert_eq!(judge("2026-03-02T09:00:00Z"), "stalled");
    /// // A stamp ahead of the clock never counts as fresh.
    /// assert_eq!(judge("2026-03-02T07:00:00Z"), "clock_suspect");
    /// ```
    pub fn judge(pulse: &Pulse, thresholds: &Thresholds, now: DateTime<Utc>) -> Liveness {
        let heartbeat = signal(SignalKind::Heartbeat, pulse.heartbeat.as_ref(), now);
        let progress = signal(SignalKind::Progress, pulse.progress.as_ref(), now);
        // If both stamps are equal, the heartbeat counts as the last signal.
        let last = || {
            [&progress, &heartbeat]
                .into_iter()
                .flatten()
                .max_by_key(|s| s.at)
                .cloned()
        };
        match &pulse.activity {
            Activity::Finished => return Liveness::Finished { last: last() },
            Activity::Blocked => return Liveness::Blocked { last: last() },
            Activity::Waiting => return Liveness::Waiting { last: last() },
            Activity::Unclear(status) => {
                return Liveness::Unknown {
                    reason: format!(
                        "the meaning of the status {status} is unknown",
                        status = quoted(status)
                    ),
                };
            }
            Activity::Working => {}
        }
        let Some(last) = last() else {
            return Liveness::Unknown {
                reason: no_stamp(pulse),
            };
        };
        let ahead = |signal: &&Signal| signal.age < -thresholds.tolerance;
        if let Some(stamp) = [&progress, &heartbeat].into_iter().flatten().find(ahead) {
            return Liveness::ClockSuspect {
                stamp: stamp.clone(),
            };
        }
        judge_silence(pulse, thresholds, now, last, heartbeat.is_some(), progress)
    }
}

fn judge_silence(
    pulse: &Pulse,
    thresholds: &Thresholds,
    now: DateTime<Utc>,
    last: Signal,
    beats: bool,
    progress: Option<Signal>,
) -> Liveness {
    let limit = |threshold, times| limit(pulse, last.at, threshold, times);
    let reached = |crossed: &Crossed| now >= crossed.since;
    let session_timed_out = thresholds
        .session_timeout
        .is_some_and(|timeout| reached(&limit(timeout, 2)));
    let stalled = limit(thresholds.stalled, 4);
    if reached(&stalled) {
        return Liveness::Stalled {
            last,
            crossed: stalled,
            session_timed_out,
        };
    }
    let late = limit(thresholds.late, 2);
    if reached(&late) {
        return Liveness::Late {
            last,
            crossed: late,
            session_timed_out,
        };
    }
    // Without a separate heartbeat, only the silence can be judged.
    if let Some(progress) = progress.filter(|_| beats) {
        let declared = Pulse {
            busy_until: pulse.busy_until.clone(),
            ..Pulse::default()
        };
        let stuck = self::limit(&declared, progress.at, thresholds.stuck, 0);
        if reached(&stuck) {
            return Liveness::Stuck {
                last: progress,
                crossed: stuck,
            };
        }
    }
    Liveness::Active {
        last,
        session_timed_out,
    }
}

/// The time at which a silence since `from` crosses a limit. It is the latest of: the threshold, `times`
/// declared intervals, the declared next time, and the end of the busy time.
fn limit(pulse: &Pulse, from: DateTime<Utc>, threshold: TimeDelta, times: i32) -> Crossed {
    let mut crossed = Crossed {
        limit: Limit::Threshold,
        after: threshold,
        since: after(from, threshold),
    };
    let mut extend = |limit, since: Option<DateTime<Utc>>| {
        if let Some(since) = since.filter(|since| *since > crossed.since) {
            crossed = Crossed {
                limit,
                after: since - from,
                since,
            };
        }
    };
    let interval = pulse.interval.and_then(|each| each.checked_mul(times));
    extend(
        Limit::DeclaredInterval,
        interval.map(|interval| after(from, interval)),
    );
    extend(Limit::NextExpected, utc(pulse.next_expected.as_ref()));
    extend(Limit::BusyUntil, utc(pulse.busy_until.as_ref()));
    crossed
}

/// Adds a span to a time, and stays within the range of the calendar.
fn after(from: DateTime<Utc>, span: TimeDelta) -> DateTime<Utc> {
    let end = if span < TimeDelta::zero() {
        DateTime::<Utc>::MIN_UTC
    } else {
        DateTime::<Utc>::MAX_UTC
    };
    from.checked_add_signed(span).unwrap_or(end)
}

fn utc(stamp: Option<&Timestamp>) -> Option<DateTime<Utc>> {
    Some(stamp?.time()?.to_utc())
}

fn signal(by: SignalKind, stamp: Option<&Timestamp>, now: DateTime<Utc>) -> Option<Signal> {
    let at = utc(stamp)?;
    Some(Signal {
        by,
        at,
        age: now.signed_duration_since(at),
    })
}

fn no_stamp(pulse: &Pulse) -> String {
    let stamps = [pulse.progress.as_ref(), pulse.heartbeat.as_ref()];
    match stamps.into_iter().flatten().next() {
        Some(stamp) => format!(
            "the stamp {} is not an RFC 3339 time with a zone",
            quoted(stamp.text())
        ),
        None => "the checkpoint has no time stamp".to_owned(),
    }
}
