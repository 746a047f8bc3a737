//! The help: the verbs in groups, an example for each, and the features of this build.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use agent_checkpoint::formats::Formats;
use clap::{Command, CommandFactory};

use crate::args::Args;
use crate::inputs::{self, below};

/// The verbs by purpose, daily work first.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Daily work",
        &[
            "start", "step", "decide", "note", "block", "resume", "status", "show", "claim",
            "complete",
        ],
    ),
    (
        "Other reports",
        &[
            "unblock",
            "heartbeat",
            "context",
            "detail",
            "fail",
            "pause",
            "rate-limit",
            "reassign",
            "restart",
            "phase",
            "stage",
            "sync",
            "verify",
            "subtask",
            "workstream",
            "task",
            "gate",
            "waive",
            "review",
            "lead",
            "batch",
        ],
    ),
    (
        "Reading",
        &[
            "list", "report", "doctor", "detect", "validate", "revision", "stale", "history",
            "diff", "convert", "effects", "check", "guide", "schema",
        ],
    ),
    (
        "Changing",
        &[
            "once", "prove", "ask", "approve", "deny", "approved", "set", "release", "restore",
            "recover", "archive", "copy", "prune", "forget",
        ],
    ),
    (
        "The command itself",
        &["init", "hook", "config", "completions", "man"],
    ),
];

/// The heading of verbs without a group: those that another program's formats add.
const OTHERS: &str = "Of one format";

/// An example command line for each verb.
const EXAMPLES: [(&str, &str); 83] = [
    ("start", "ckpt start --plan 'Wire toggle' 'Write tests'"),
    ("step start", "ckpt step start 'Wire toggle'"),
    (
        "step done",
        "ckpt step done 'Wired toggle to context' --modified src/toggle.tsx",
    ),
    (
        "step add",
        "ckpt step add 'Write docs' --before 'Write tests'",
    ),
    (
        "step drop",
        "ckpt step drop 'Write docs' --because 'the feature is internal'",
    ),
    (
        "step edit",
        "ckpt step edit 'Write tests' --to 'Write unit tests'",
    ),
    (
        "step move",
        "ckpt step move 'Write tests' --before 'Write docs'",
    ),
    (
        "decide",
        "ckpt decide 'Use CSS custom properties' --why 'no cost at run time'",
    ),
    ("note", "ckpt note 'toggle renders, context is missing'"),
    ("block", "ckpt block 'CI is down'"),
    ("resume", "ckpt resume checkpoints/US-003.json --header"),
    ("status", "ckpt status checkpoints --expect ui-dev"),
    ("show", "ckpt show checkpoints/US-003.json"),
    (
        "claim",
        "eval \"$(ckpt claim --agent ui-dev --for 30m --export)\"",
    ),
    ("complete", "ckpt complete"),
    (
        "once",
        "ckpt once 'release 1.4' --check './is-released 1.4' -- ./release 1.4",
    ),
    (
        "prove",
        "ckpt prove 'Write tests' --inputs src tests -- cargo test",
    ),
    ("check", "ckpt check --rerun"),
    ("effects", "ckpt effects --done 'release 1.4'"),
    ("ask", "ckpt ask 'release 1.4' -- ./release 1.4"),
    ("approve", "ckpt approve 'release 1.4' --by Ann"),
    (
        "deny",
        "ckpt deny 'release 1.4' --by Ann --because 'not on a Friday'",
    ),
    ("approved", "ckpt approved 'release 1.4' -- ./release 1.4"),
    ("unblock", "ckpt unblock"),
    ("heartbeat", "ckpt heartbeat"),
    ("context", "ckpt context --used 0.78"),
    ("detail", "ckpt detail --instructions 'Run the tests first'"),
    ("fail", "ckpt fail 'the API has no such call'"),
    ("pause", "ckpt pause"),
    (
        "rate-limit",
        "ckpt rate-limit 'half of the tests are written'",
    ),
    ("reassign", "ckpt reassign --to test-writer"),
    ("restart", "ckpt restart --because 'the plan was wrong'"),
    ("phase", "ckpt phase verification"),
    ("stage", "ckpt stage STAGE_1"),
    ("sync", "ckpt sync design-review"),
    ("verify", "ckpt verify 'unit tests' passed"),
    ("subtask add", "ckpt subtask add logo"),
    ("subtask start", "ckpt subtask start logo"),
    ("subtask done", "ckpt subtask done logo --file img/logo.svg"),
    (
        "subtask fail",
        "ckpt subtask fail logo --because 'no source file'",
    ),
    ("workstream add", "ckpt workstream add WS2"),
    ("workstream start", "ckpt workstream start WS2"),
    (
        "workstream done",
        "ckpt workstream done WS2 --file src/api.rs",
    ),
    (
        "workstream fail",
        "ckpt workstream fail WS2 --because 'the build fails'",
    ),
    (
        "workstream dormant",
        "ckpt workstream dormant WS2 --because 'not in this run'",
    ),
    ("task add", "ckpt task add T-3"),
    ("task start", "ckpt task start T-3"),
    ("task done", "ckpt task done T-3"),
    (
        "task fail",
        "ckpt task fail T-3 --because 'the API is down'",
    ),
    ("gate pass", "ckpt gate pass G1 --phase 1"),
    (
        "gate fail",
        "ckpt gate fail G1 --because 'a test fails' --workstream WS2",
    ),
    (
        "waive",
        "ckpt waive --issue 123 --because 'the stack is down'",
    ),
    ("review", "ckpt review ship --p1 2"),
    ("batch", "ckpt batch <reports.jsonl"),
    ("list", "ckpt list checkpoints"),
    ("report", "ckpt report checkpoints --html report.html"),
    ("detect", "ckpt detect checkpoints/*.json"),
    ("validate", "ckpt validate checkpoints/*.json"),
    ("revision", "ckpt revision checkpoints/US-003.json"),
    ("stale", "ckpt stale checkpoints/US-003.json"),
    ("history", "ckpt history checkpoints/US-003.json"),
    (
        "diff",
        "git show HEAD:checkpoints/US-003.json | ckpt diff checkpoints/US-003.json --from -",
    ),
    ("guide", "ckpt guide task"),
    ("schema", "ckpt schema task"),
    (
        "set",
        "ckpt set checkpoints/US-003.json '/phase=\"verification\"'",
    ),
    (
        "restore",
        "ckpt restore checkpoints/US-003.json --entry sha256:3fa94c",
    ),
    ("recover", "ckpt recover checkpoints/US-003.json"),
    ("release", "ckpt release --fence 3"),
    (
        "archive",
        "ckpt archive checkpoints/US-003.json --as aborted",
    ),
    (
        "convert",
        "ckpt convert checkpoints/US-003.json --to sitebuilder",
    ),
    ("copy", "ckpt copy checkpoints sqlite:tasks.db"),
    ("prune", "ckpt prune checkpoints/US-003.json --keep 3"),
    ("forget", "ckpt forget checkpoints/US-003.json --apply"),
    ("doctor", "ckpt doctor checkpoints"),
    ("init", "ckpt init --hooks claude --write"),
    ("hook", "ckpt hook SessionStart <payload.json"),
    ("config", "ckpt config"),
    (
        "completions",
        "ckpt completions bash >~/.local/share/bash-completion/completions/ckpt",
    ),
    ("man", "ckpt man --out ~/.local/share/man/man1"),
    ("lead begin", "ckpt lead begin SHOP-12 --store .pipeline"),
    ("lead record", "ckpt lead record SHOP-12 --store .pipeline"),
    (
        "lead crashed",
        "ckpt lead crashed SHOP-12 --store .pipeline",
    ),
    ("lead finish", "ckpt lead finish SHOP-12 --store .pipeline"),
];

/// The text of `--version`: the version and the kinds of stores in this build.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let stores = [
        ("files", true),
        ("sqlite", cfg!(feature = "sqlite")),
        ("postgres", cfg!(feature = "postgres")),
        ("s3", cfg!(feature = "s3")),
        ("gs", cfg!(feature = "gs")),
        ("az", cfg!(feature = "az")),
    ];
    let stores = stores.iter().filter(|(_, is_built)| *is_built);
    let stores: Vec<&str> = stores.map(|(name, _)| *name).collect();
    format!(
        "{} (stores: {})",
        env!("CARGO_PKG_VERSION"),
        stores.join(", ")
    )
});

/// The command with its help, and with the arguments that these formats add.
pub(crate) fn command(formats: &Formats) -> Command {
    with_help(inputs::command(Args::command(), formats))
}

fn with_help(mut command: Command) -> Command {
    for (verb, example) in EXAMPLES {
        if let Some(verb) = below(&mut command, verb) {
            let example = format!("Example:\n  {example}");
            *verb = std::mem::take(verb).after_help(example);
        }
    }
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        groups(&command)
    );
    command.version(VERSION.as_str()).help_template(template)
}

/// The groups as text.
fn groups(command: &Command) -> String {
    let grouped: BTreeSet<&str> = GROUPS
        .iter()
        .flat_map(|(_, verbs)| *verbs)
        .copied()
        .collect();
    let names = command.get_subcommands().map(Command::get_name);
    let others: Vec<&str> = names.filter(|name| !grouped.contains(name)).collect();
    let mut text = String::new();
    for (title, verbs) in GROUPS.into_iter().chain([(OTHERS, &others[..])]) {
        let verbs = verbs
            .iter()
            .filter_map(|name| command.find_subcommand(name));
        let lines: String = verbs.map(line).collect();
        if !lines.is_empty() {
            text.push_str(&format!("{title}:\n{lines}\n"));
        }
    }
    text
}

/// A verb and its short description.
fn line(verb: &Command) -> String {
    let about = verb.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    let short = about.split([':', ';']).next().unwrap_or_default();
    format!("  {:12} {short}\n", verb.get_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(command: &Command, above: &str, words: &mut Vec<String>) {
        for verb in command.get_subcommands() {
            let own = format!("{above} {}", verb.get_name());
            match verb.has_subcommands() {
                true => leaves(verb, &own, words),
                false => words.push(own.trim().to_owned()),
            }
        }
    }

    #[test]
    fn each_verb_has_an_example_that_can_be_typed() {
        let command = super::command(&Formats::default());
        let mut verbs = Vec::new();
        leaves(&command, "", &mut verbs);
        verbs.sort();
        let mut known: Vec<&str> = EXAMPLES.iter().map(|(verb, _)| *verb).collect();
        known.sort_unstable();
        assert_eq!(verbs, known);
        for (verb, example) in EXAMPLES {
            let (_, own) = example.split_once("ckpt ").unwrap();
            assert!(own.starts_with(verb), "{example}");
            // Shell syntax ends the arguments of the command.
            let end = [" <", " >", ")\""]
                .iter()
                .filter_map(|mark| own.find(mark))
                .min();
            let own = &own[..end.unwrap_or(own.len())];
            let quoted = own.split('\'').enumerate();
            let words = quoted.flat_map(|(at, text)| match at % 2 {
                0 => text.split_whitespace().collect(),
                _ => vec![text],
            });
            let line = std::iter::once("ckpt").chain(words);
            let parsed = command.clone().try_get_matches_from(line);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn each_verb_is_in_one_group() {
        let text = groups(&super::command(&Formats::default()));
        assert!(!text.contains(OTHERS), "{text}");
        let grouped = GROUPS.iter().flat_map(|(_, verbs)| *verbs);
        for verb in grouped {
            let lines = text
                .lines()
                .filter(|line| line.split_whitespace().next() == Some(*verb));
            assert_eq!(
                lines.filter(|line| line.starts_with("  ")).count(),
                1,
                "{verb}"
            );
        }
        let more =
            super::command(&Formats::default()).subcommand(Command::new("own").about("Own: x"));
        assert!(groups(&more).ends_with("Of one format:\n  own          Own\n\n"));
    }
}
