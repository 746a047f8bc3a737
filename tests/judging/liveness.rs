//! Liveness: the verdict at each threshold of each protocol, one second before and after.

use crate::common;

use crate::common::{clock, key, time};
use agent_checkpoint::formats::Formats;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::sitebuilder::{SitebuilderCheckpoint, supervisor_thresholds};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::liveness::{Limit, Liveness, Pulse, SignalKind, Thresholds};
use agent_checkpoint::store::{BuilderStateStore, CheckpointStore, MemoryStore, Put};
use agent_checkpoint::{Checkpoint, CheckpointStoreExt, Handoff, RuleContext, Status, Timestamp};
use chrono::TimeDelta;

const T0: &str = "2026-03-02T08:00:00Z";

fn stamp(text: &str) -> Option<Timestamp> {
    Some(Timestamp::parse(text))
}

/// The stamp this many seconds after the start.
fn at(seconds: i64) -> Option<Timestamp> {
    stamp(&(time(T0) + TimeDelta::seconds(seconds)).to_rfc3339())
}

/// The verdict on a document of a format, this many seconds after the start.
fn verdict(format: &str, text: &str, seconds: i64) -> Liveness {
    let format = *Formats::default().get(format).unwrap();
    let document = Document::from_text(text).unwrap();
    let now = time(T0) + TimeDelta::seconds(seconds);
    let surveyed = format
        .inspect(&document, &RuleContext::none().with_now(now))
        .unwrap();
    Liveness::judge(&surveyed.pulse, &format.thresholds(), now)
}

/// A document whose last change was at the start.
fn at_work(format: &str) -> String {
    let text = match format {
        "task" | "builder-state" => {
            r#"{"phase":"implementation","completedSteps":[],"pendingSteps":["a"],
               "currentStep":{"description":"a","startedAt":"START"},
               "metadata":{"createdBy":"dev","lastUpdatedAt":"START","reason":"periodic"}}"#
        }
        "agent-session" => {
            r#"{"agent_id":"Secondary-A","status":"IN_PROGRESS","last_checkpoint":"START",
               "next_checkpoint_expected":"2026-03-02T08:15:00Z"}"#
        }
        "sitebuilder" => {
            r#"{"checkpoint_id":"x","agent":"media","task_id":"T1","status":"in_progress",
               "updated_at":"START"}"#
        }
        "story-pipeline" => {
            r#"{"storyId":"SHOP-1","stage":2,"agentId":"a","lastAction":"x","timestamp":"START",
               "tasksCompleted":["A"],"tasksRemaining":["B"]}"#
        }
        "story-pipeline-state" => r#"{"story_state":{"SHOP-1":"STAGE_2"},"last_check":"START"}"#,
        "build-pipeline" => {
            r#"{"prd":"PRD-001","status":"in_progress","in_progress_workstreams":["WS1"],
               "timestamp":"START"}"#
        }
        other => panic!("{other} has no example here"),
    };
    text.replace("START", T0)
}

#[test]
fn every_protocol_crosses_its_thresholds_to_the_second() {
    for format in Formats::default().iter() {
        let (late, stalled) = match format.name() {
            "sitebuilder" => (10, 30),
            _ => (30, 60),
        };
        let text = at_work(format.name());
        for (seconds, expected) in [
            (0, "active"),
            (late * 60 - 1, "active"),
            (late * 60, "late"),
            (late * 60 + 1, "late"),
            (stalled * 60 - 1, "late"),
            (stalled * 60, "stalled"),
            (stalled * 60 + 1, "stalled"),
        ] {
            let found = verdict(format.name(), &text, seconds);
            assert_eq!(found.as_str(), expected, "{} at {seconds} s", format.name());
        }
    }
}

#[test]
fn a_verdict_says_by_which_stamp_and_which_limit_and_since_when() {
    let late = verdict("agent-session", &at_work("agent-session"), 31 * 60);
    let last = late.signal().unwrap();
    assert_eq!((last.by, last.at), (SignalKind::Progress, time(T0)));
    assert_eq!(last.age, TimeDelta::minutes(31));
    let crossed = late.crossed().unwrap();
    assert_eq!(crossed.limit, Limit::Threshold);
    assert_eq!(crossed.since, time("2026-03-02T08:30:00Z"));
    assert_eq!(
        late.to_string(),
        "late: last progress 31 min ago, limit 30 min"
    );
    assert_eq!(
        serde_json::to_value(&late).unwrap(),
        serde_json::json!({
            "verdict": "late",
            "last": {"by": "progress", "at": "2026-03-02T08:00:00Z", "age_seconds": 1860},
            "crossed": {"limit": "threshold", "after_seconds": 1800, "since": "2026-03-02T08:30:00Z"},
            "session_timed_out": false,
        })
    );
}

#[test]
fn a_declared_next_time_puts_both_off_until_it_has_come() {
    let text = at_work("agent-session").replace("08:15:00Z", "09:30:00Z");
    // Ninety minutes exceed both thresholds, so late and stalled coincide.
    assert_eq!(verdict("agent-session", &text, 5399).as_str(), "active");
    let stalled = verdict("agent-session", &text, 5400);
    assert_eq!(stalled.as_str(), "stalled");
    assert_eq!(stalled.crossed().unwrap().limit, Limit::NextExpected);
    // Between the thresholds it delays only the first one.
    let text = at_work("agent-session").replace("08:15:00Z", "08:45:00Z");
    assert_eq!(verdict("agent-session", &text, 2699).as_str(), "active");
    assert_eq!(verdict("agent-session", &text, 2700).as_str(), "late");
    assert_eq!(verdict("agent-session", &text, 3600).as_str(), "stalled");
    // A time that has passed, or is no time, delays nothing.
    for next in ["07:00:00Z", "N/A"] {
        let text = at_work("agent-session").replace("08:15:00Z", next);
        assert_eq!(verdict("agent-session", &text, 1800).as_str(), "late");
    }
}

#[test]
fn busy_agents_are_not_declared_dead() {
    let pulse = |interval| {
        Pulse::default()
            .with_progress(stamp(T0))
            .with_interval(Some(interval))
    };
    let judge = |pulse: &Pulse, seconds| {
        let now = time(T0) + TimeDelta::seconds(seconds);
        Liveness::judge(pulse, &Thresholds::default(), now).as_str()
    };
    // Late: the greater of the threshold and twice the interval. Stalled: the greater of the threshold and four times
    // the interval.
    let slow = pulse(TimeDelta::minutes(40));
    for (seconds, expected) in [
        (80 * 60 - 1, "active"),
        (80 * 60, "late"),
        (160 * 60 - 1, "late"),
        (160 * 60, "stalled"),
    ] {
        assert_eq!(judge(&slow, seconds), expected, "{seconds}");
    }
    let quick = pulse(TimeDelta::minutes(5));
    assert_eq!(judge(&quick, 30 * 60 - 1), "active");
    assert_eq!(judge(&quick, 30 * 60), "late");
    assert_eq!(judge(&quick, 60 * 60), "stalled");
    // Busy until a time: neither verdict before that time.
    let busy = Pulse::default()
        .with_progress(stamp(T0))
        .with_busy_until(at(4 * 3600));
    assert_eq!(judge(&busy, 4 * 3600 - 1), "active");
    assert_eq!(judge(&busy, 4 * 3600), "stalled");
}

#[test]
fn the_interval_of_a_sitebuilder_extends_its_thresholds_and_nonsense_does_not() {
    let with = |interval: &str| {
        at_work("sitebuilder").replace(
            "\"updated_at\"",
            &format!(
                "\"heartbeat\":{{\"last_beat\":\"{T0}\",\"interval_seconds\":{interval}}},\"updated_at\""
            ),
        )
    };
    // 300 s is the interval of the protocol, so 10 and 30 minutes stay.
    assert_eq!(verdict("sitebuilder", &with("300"), 600).as_str(), "late");
    assert_eq!(
        verdict("sitebuilder", &with("300"), 1800).as_str(),
        "stalled"
    );
    let hour = with("3600");
    assert_eq!(verdict("sitebuilder", &hour, 7199).as_str(), "active");
    let late = verdict("sitebuilder", &with("600"), 1200);
    assert_eq!(late.as_str(), "late");
    assert_eq!(late.crossed().unwrap().limit, Limit::DeclaredInterval);
    for nonsense in ["-5", "0", "1e300"] {
        let found = verdict("sitebuilder", &with(nonsense), 600);
        assert_eq!(found.as_str(), "late", "{nonsense}");
    }
}

#[test]
fn a_process_that_beats_and_does_not_get_on_is_stuck() {
    let text = |beat: &str| {
        at_work("sitebuilder").replace(
            "\"updated_at\"",
            &format!("\"heartbeat\":{{\"last_beat\":\"{beat}\"}},\"updated_at\""),
        )
    };
    let fresh = text("2026-03-02T09:59:00Z");
    assert_eq!(verdict("sitebuilder", &fresh, 7199).as_str(), "active");
    let stuck = verdict("sitebuilder", &fresh, 7200);
    assert_eq!(stuck.as_str(), "stuck");
    assert_eq!(stuck.signal().unwrap().by, SignalKind::Progress);
    assert!(
        stuck.to_string().starts_with("stuck: it sends heartbeats"),
        "{stuck}"
    );
    // An agent that no longer beats is gone, not stuck.
    let silent = text("2026-03-02T09:20:00Z");
    assert_eq!(verdict("sitebuilder", &silent, 7200).as_str(), "stalled");
    // Without a separate heartbeat the two cannot be distinguished.
    assert_eq!(
        verdict("sitebuilder", &at_work("sitebuilder"), 7200).as_str(),
        "stalled"
    );
    let only_progress = Pulse::default().with_progress(stamp(T0));
    let mut short = Thresholds::default();
    short.stuck = TimeDelta::minutes(5);
    let now = time(T0) + TimeDelta::minutes(6);
    let judge = |pulse: &Pulse| Liveness::judge(pulse, &short, now).as_str();
    assert_eq!(judge(&only_progress), "active");
    assert_eq!(judge(&only_progress.with_heartbeat(at(300))), "stuck");
    // Not while it is busy by its own word.
    let busy = Pulse::default()
        .with_heartbeat(at(8990))
        .with_progress(stamp(T0))
        .with_busy_until(at(9000));
    let judge = |seconds| {
        let now = time(T0) + TimeDelta::seconds(seconds);
        Liveness::judge(&busy, &Thresholds::default(), now).as_str()
    };
    assert_eq!((judge(8999), judge(9000)), ("active", "stuck"));
}

#[test]
fn progress_is_a_sign_of_life_too() {
    let text = at_work("sitebuilder").replace(
        "\"updated_at\"",
        "\"heartbeat\":{\"last_beat\":\"2026-03-02T07:00:00Z\"},\"updated_at\"",
    );
    let found = verdict("sitebuilder", &text, 60);
    assert_eq!(found.as_str(), "active");
    assert_eq!(found.signal().unwrap().by, SignalKind::Progress);
}

#[test]
fn a_stamp_ahead_of_the_clock_is_suspect_and_never_fresh() {
    for format in Formats::default().iter() {
        let text = at_work(format.name());
        assert_eq!(verdict(format.name(), &text, -5).as_str(), "active");
        assert_eq!(verdict(format.name(), &text, -6).as_str(), "clock_suspect");
        let invented = verdict(format.name(), &text, -71 * 3600);
        assert_eq!(invented.as_str(), "clock_suspect", "{}", format.name());
        assert!(invented.needs_attention());
    }
    // Even if the other stamp is good.
    let pulse = Pulse::default()
        .with_heartbeat(stamp(T0))
        .with_progress(at(71 * 3600));
    let found = Liveness::judge(&pulse, &Thresholds::default(), time(T0));
    assert_eq!(found.as_str(), "clock_suspect");
    assert_eq!(
        found.to_string(),
        "clock suspect: its progress lies 2 d 23 h in the future"
    );
}

#[test]
fn local_time_read_as_utc_shows() {
    let local = |text: &str| {
        let text = at_work("agent-session").replace(T0, text);
        verdict("agent-session", &text, 120 * 60)
    };
    // An offset is honoured: this is the start.
    assert_eq!(local("2026-03-02T10:00:00+02:00").as_str(), "stalled");
    // Local time east of Greenwich with a wrong Z lies in the future, and would never become stale.
    assert_eq!(local("2026-03-02T12:00:00Z").as_str(), "clock_suspect");
    // Without a zone the time is ambiguous.
    let none = local("2026-03-02T10:00:00");
    assert_eq!(
        none.to_string(),
        "unknown: the stamp \"2026-03-02T10:00:00\" is not an RFC 3339 time with a zone"
    );
    assert!(none.needs_attention());
}

#[test]
fn who_waits_is_blocked_or_done_need_not_beat() {
    let long = 1_000_000;
    let session = |status: &str| {
        let text = at_work("agent-session").replace("IN_PROGRESS", status);
        verdict("agent-session", &text, long).as_str()
    };
    for waiting in ["WAITING", "WAITING_FOR_SYNC", "PAUSED", "waiting-for-sync"] {
        assert_eq!(session(waiting), "waiting", "{waiting}");
    }
    assert_eq!(session("BLOCKED"), "blocked");
    assert_eq!(session("COMPLETE"), "finished");
    // An unknown status is not guessed at.
    assert_eq!(session("RESTING"), "unknown");
    let build = |status: &str| {
        let text = at_work("build-pipeline").replace("in_progress\"", &format!("{status}\""));
        verdict("build-pipeline", &text, long).as_str()
    };
    assert_eq!(build("initialized"), "waiting");
    assert_eq!(build("paused"), "waiting");
    assert_eq!(build("failed"), "blocked");
    assert_eq!(build("complete"), "finished");
    assert_eq!(build("in_progress"), "stalled");
}

#[test]
fn a_session_times_out_at_ten_minutes_whatever_the_supervisor_waits() {
    let checkpoint = Document::from_text(at_work("sitebuilder")).unwrap();
    let checkpoint = checkpoint.read::<SitebuilderCheckpoint>().unwrap().value;
    let judge = |seconds| {
        let now = time(T0) + TimeDelta::seconds(seconds);
        Liveness::judge(&checkpoint.pulse(), &supervisor_thresholds(), now)
    };
    for (seconds, expected, timed_out) in [
        (599, "active", false),
        (600, "active", true),
        (1799, "active", true),
        (1800, "late", true),
        (7199, "late", true),
        (7200, "stalled", true),
    ] {
        let found = judge(seconds);
        assert_eq!(found.as_str(), expected, "{seconds}");
        assert_eq!(found.session_timed_out(), timed_out, "{seconds}");
    }
    // A beating agent has not ended its session.
    let beats = checkpoint.pulse().with_heartbeat(at(590));
    let now = time(T0) + TimeDelta::seconds(600);
    let found = Liveness::judge(&beats, &SitebuilderCheckpoint::thresholds(), now);
    assert!(!found.session_timed_out());
}

#[test]
fn the_view_of_a_store_and_the_fleet_ask_the_same_function() {
    // One monitor with the store's view, another with the whole table.
    let store = MemoryStore::new();
    let text = at_work("agent-session");
    let document = Document::from_text(text.as_str()).unwrap();
    let id = key("Secondary-A");
    store.put(&id, Put::new(document.clone())).unwrap();
    for seconds in [0, 1799, 1800, 3599, 3600, -6] {
        let now = time(T0) + TimeDelta::seconds(seconds);
        let view = store.checkpoints::<AgentCheckpoint>();
        let view = view.with_clock(agent_checkpoint::FixedClock(now));
        let one = view.liveness(&id).unwrap();
        let sources = [agent_checkpoint::fleet::Source::store("memory", &store)];
        let fleet = agent_checkpoint::fleet::Fleet::scan(&sources, &Default::default(), now);
        assert_eq!(fleet.rows()[0].liveness(), Some(&one));
        assert_eq!(one, verdict("agent-session", &text, seconds));
    }
}

#[test]
fn the_heartbeat_of_a_host_counts_apart_from_progress() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("builder-state.json");
    std::fs::write(&path, common::EXAMPLE).unwrap();
    let store = BuilderStateStore::open(&path);
    // Progress at 10:10, heartbeat at 10:15.
    let judge = |now| {
        let tasks = store.checkpoints::<TaskCheckpoint>().with_clock(clock(now));
        tasks.liveness(&key("active")).unwrap().as_str()
    };
    assert_eq!(judge("2026-02-28T10:44:59Z"), "active");
    assert_eq!(judge("2026-02-28T10:45:00Z"), "late");
    let beating = common::EXAMPLE.replace("10:15:00Z", "12:05:00Z");
    std::fs::write(&path, beating).unwrap();
    assert_eq!(judge("2026-02-28T12:09:59Z"), "active");
    assert_eq!(judge("2026-02-28T12:10:00Z"), "stuck");
}

#[test]
fn a_format_of_ones_own_gets_it_from_its_hand_off() {
    let mut handoff = Handoff::default();
    handoff.status = Status::InProgress;
    handoff.updated_at = stamp(T0);
    let pulse = Pulse::of(&handoff);
    let judge = |seconds| {
        let now = time(T0) + TimeDelta::seconds(seconds);
        Liveness::judge(&pulse, &Thresholds::default(), now).as_str()
    };
    assert_eq!(
        (judge(1799), judge(1800), judge(3600)),
        ("active", "late", "stalled")
    );
}

#[test]
fn no_stamp_and_no_span_makes_it_panic() {
    let ends = [
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:60Z",
        "-9999-01-01T00:00:00Z",
        T0,
        "",
    ];
    let spans = [TimeDelta::MAX, TimeDelta::MIN, TimeDelta::zero()];
    for heartbeat in ends {
        for progress in ends {
            for interval in spans {
                let pulse = Pulse::default()
                    .with_heartbeat(stamp(heartbeat))
                    .with_progress(stamp(progress))
                    .with_interval(Some(interval))
                    .with_next_expected(stamp(progress))
                    .with_busy_until(stamp(heartbeat));
                let mut thresholds = Thresholds::at(interval, interval);
                thresholds.stuck = interval;
                for now in [time(T0), chrono::DateTime::<chrono::Utc>::MAX_UTC] {
                    let _ = Liveness::judge(&pulse, &thresholds, now).to_string();
                }
            }
        }
    }
}
