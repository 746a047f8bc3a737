//! From the command line to a report.

use agent_checkpoint::Report;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use crate::args;
use crate::failure::Failure;
use crate::global::time_from;

/// The report of a verb. Its words become the `op` of a line of `ckpt batch` and its options the other members, so that
/// both go through the same parser. Only here a time may be a span from `now`.
pub(crate) fn report(verb: &args::Report, now: DateTime<Utc>) -> Result<Report, Failure> {
    let unread = |error: serde_json::Error| Failure::new(error.to_string());
    let mut words = Vec::new();
    let mut value = serde_json::to_value(verb).map_err(unread)?;
    // `{"step": {"done": {"text": …, "force": false}}}`
    while let Value::Object(members) = &mut value
        && !members.contains_key("force")
        && let Some((word, below)) = std::mem::take(members).into_iter().next()
    {
        words.push(word);
        value = below;
    }
    // The verbs that a workstream shares with other items are nested one level deeper, under a name that is not a word.
    words.retain(|word| word != "item");
    value["op"] = words.join(" ").into();
    if let Some(until) = value["until"].as_str() {
        let until = time_from(until, now).map_err(Failure::usage)?;
        value["until"] = until.to_rfc3339().into();
    }
    Report::deserialize(value).map_err(unread)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Verb};

    const NOW: &str = "2026-03-02T09:00:00Z";

    #[test]
    fn a_verb_reports_what_the_line_of_the_same_words_does() {
        for (words, line) in [
            ("step start a", r#"{"op":"step start","text":"a"}"#),
            ("step done", r#"{"op":"step done"}"#),
            (
                "step done a --current --created b --modified c d",
                r#"{"op":"step done","text":"a","current":true,"created":["b"],"modified":["c","d"]}"#,
            ),
            (
                "step done a --pending b",
                r#"{"op":"step done","text":"a","pending":"b"}"#,
            ),
            (
                "step add a --before b",
                r#"{"op":"step add","text":"a","before":"b"}"#,
            ),
            (
                "step drop a --because b",
                r#"{"op":"step drop","text":"a","because":"b"}"#,
            ),
            (
                "step edit a --to b",
                r#"{"op":"step edit","text":"a","to":"b"}"#,
            ),
            (
                "step move a --before b",
                r#"{"op":"step move","text":"a","before":"b"}"#,
            ),
            (
                "decide a --why b",
                r#"{"op":"decide","text":"a","why":"b"}"#,
            ),
            ("note a", r#"{"op":"note","text":"a"}"#),
            (
                "block a --type b",
                r#"{"op":"block","text":"a","type":"b"}"#,
            ),
            (
                "detail --created a --modified b --committed --instructions c --plan d e --processed f --next g",
                r#"{"op":"detail","created":["a"],"modified":["b"],"committed":true,"instructions":"c","plan":["d","e"],"processed":"f","next":"g"}"#,
            ),
            (
                "detail --unread 2 --overview --status-file --contract a",
                r#"{"op":"detail","unread":2,"overview":true,"status_file":true,"contract":"a"}"#,
            ),
            ("unblock", r#"{"op":"unblock"}"#),
            ("heartbeat", r#"{"op":"heartbeat"}"#),
            ("fail a", r#"{"op":"fail","text":"a"}"#),
            ("rate-limit", r#"{"op":"rate-limit"}"#),
            ("rate-limit a", r#"{"op":"rate-limit","text":"a"}"#),
            (
                "rate-limit --until 2026-03-02T10:00:00+01:00",
                r#"{"op":"rate-limit","until":"2026-03-02T09:00:00Z"}"#,
            ),
            (
                "pause --until 1h30m",
                r#"{"op":"pause","until":"2026-03-02T10:30:00Z"}"#,
            ),
            ("context --used 0.78", r#"{"op":"context","used":0.78}"#),
            ("context --messages 30", r#"{"op":"context","messages":30}"#),
            (
                "context --messages 30 --of 40",
                r#"{"op":"context","messages":30,"of":40}"#,
            ),
            ("reassign --to a", r#"{"op":"reassign","to":"a"}"#),
            ("pause --force", r#"{"op":"pause","force":true}"#),
            ("complete", r#"{"op":"complete"}"#),
            ("phase a", r#"{"op":"phase","name":"a"}"#),
            ("stage 2", r#"{"op":"stage","name":2}"#),
            ("sync a", r#"{"op":"sync","name":"a"}"#),
            ("restart --because a", r#"{"op":"restart","because":"a"}"#),
            (
                "verify a b",
                r#"{"op":"verify","activity":"a","status":"b"}"#,
            ),
            ("subtask add a", r#"{"op":"subtask add","id":"a"}"#),
            ("subtask start a", r#"{"op":"subtask start","id":"a"}"#),
            (
                "workstream done a --file f g",
                r#"{"op":"workstream done","id":"a","files":["f","g"]}"#,
            ),
            (
                "task fail a --because b",
                r#"{"op":"task fail","id":"a","because":"b"}"#,
            ),
            (
                "workstream dormant a --because b",
                r#"{"op":"workstream dormant","id":"a","because":"b"}"#,
            ),
            (
                "gate pass a --phase 2",
                r#"{"op":"gate pass","name":"a","phase":2}"#,
            ),
            ("gate pass a", r#"{"op":"gate pass","name":"a"}"#),
            (
                "gate fail a --because b --workstream c --file d --line 4",
                r#"{"op":"gate fail","name":"a","because":"b","workstream":"c","file":"d","line":4}"#,
            ),
            (
                "waive --issue a --because b",
                r#"{"op":"waive","issue":"a","because":"b"}"#,
            ),
            (
                "review ship --p0 1 --p1 2 --attempt 2 --findings f --because b",
                r#"{"op":"review","verdict":"ship","p0":1,"p1":2,"attempt":2,"findings":"f","because":"b"}"#,
            ),
            ("review ship", r#"{"op":"review","verdict":"ship"}"#),
        ] {
            let args = Args::try_parse_from(["ckpt"].into_iter().chain(words.split(' ')));
            let Verb::Report(verb) = args.unwrap().verb else {
                panic!("{words} reports nothing");
            };
            let expected: Report = line.parse().unwrap();
            assert_eq!(
                report(&verb, NOW.parse().unwrap()).unwrap(),
                expected,
                "{words}"
            );
        }
    }
}
