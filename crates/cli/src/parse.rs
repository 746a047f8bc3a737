//! From the words of a command line to its arguments.

use std::ffi::OsString;

use agent_checkpoint::formats::Formats;
use clap::error::ErrorKind;
use clap::{FromArgMatches, Subcommand};

use crate::args::{Args, Line, Verb};
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Outcome;
use crate::settings;
use crate::verbs::hook;
use crate::{help, inputs};

/// The command line, or the text to print instead: the help, the version, or the usage error.
pub(crate) fn parse(formats: Formats) -> Result<Line, Box<Outcome>> {
    parse_words(std::env::args_os(), formats)
}

/// Parses these words, the first of which is the name of the command.
pub(crate) fn parse_words(
    words: impl IntoIterator<Item = OsString>,
    formats: Formats,
) -> Result<Line, Box<Outcome>> {
    let words: Vec<OsString> = words.into_iter().collect();
    // What follows `--` is the command line of another program.
    let has = |option: &str| {
        let own = words.iter().take_while(|word| *word != "--");
        own.into_iter().any(|word| word == option)
    };
    let mut command = help::command(&formats);
    let parsed = command
        .try_get_matches_from_mut(&words)
        .and_then(|matches| {
            let (verb, given) = inputs::given(&matches, &formats);
            let is_own = matches
                .subcommand_name()
                .is_some_and(|name| !Verb::has_subcommand(name));
            let mut line = match is_own {
                true => Line::Own(Box::new(Global::from_arg_matches(&matches)?), verb),
                false => Line::Common(Box::new(Args::from_arg_matches(&matches)?)),
            };
            let global = match &mut line {
                Line::Common(args) => &mut args.global,
                Line::Own(global, _) => global,
            };
            (global.formats, global.given) = (formats, given);
            Ok((line, matches))
        });
    let (mut line, matches) = parsed.map_err(|error| {
        let text = error.render().to_string();
        Box::new(match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Outcome {
                out: text,
                ..Outcome::new()
            },
            _ => {
                let outcome = Outcome::from(usage(&text, &command)).for_a_shell(has("--export"));
                // Nothing was parsed, so the option itself counts.
                match has("--json") {
                    true => outcome.with_error_as_json(),
                    false => outcome,
                }
            }
        })
    })?;
    let entered = match &mut line {
        Line::Common(args) => match &mut args.verb {
            Verb::Hook(called) => hook::enter(called, &args.global),
            _ => Ok(()),
        },
        Line::Own(..) => Ok(()),
    };
    match entered.and_then(|()| settings::settle(&mut line, &matches)) {
        Ok(()) => Ok(line),
        Err(failure) => {
            let outcome = Outcome::from(failure).for_a_shell(has("--export"));
            Err(Box::new(match matches.get_flag("json") {
                true => outcome.with_error_as_json(),
                false => outcome,
            }))
        }
    }
}

/// Joins the lines of a usage error into one.
fn usage(text: &str, command: &clap::Command) -> Failure {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    if lines.first().is_some_and(|line| line.starts_with("error:")) {
        // A line that ends with a colon continues in the next.
        let joined = lines
            .join("; ")
            .replace(":; ", ": ")
            .replace("; Usage: ", "; usage: ");
        let joined = joined.trim_start_matches("error:").trim();
        let joined = joined.replace(
            "invalid digit found in string",
            "it is a whole number, such as 10",
        );
        // Words after `--` are not options.
        return Failure::usage(
            joined.replace("as a value, use", "as a value, end the command with"),
        );
    }
    // Clap printed the help of a verb that needs another word.
    let verb = lines
        .iter()
        .find_map(|line| line.strip_prefix("Usage: ckpt "));
    let verb = verb
        .and_then(|line| line.split_once(" ["))
        .map(|(verb, _)| verb);
    let command = verb.and_then(|verb| command.find_subcommand(verb));
    match command {
        Some(command) => {
            let (verb, words) = (command.get_name(), command.get_subcommands());
            let words = words.map(clap::Command::get_name);
            let words: Vec<&str> = words.filter(|word| *word != "help").collect();
            Failure::usage(format!(
                "`ckpt {verb}` is followed by one of: {}; `ckpt {verb} --help` says more",
                words.join(", ")
            ))
        }
        None => Failure::usage("no verb; `ckpt --help` lists them"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::args::EXIT_CODES;

    /// Collects the words of this command and its subcommands, and all their long options.
    fn collect(
        command: &clap::Command,
        above: &str,
        verbs: &mut BTreeSet<String>,
        options: &mut BTreeSet<String>,
    ) {
        let longs = command.get_arguments().filter_map(clap::Arg::get_long);
        options.extend(longs.map(|long| format!("--{long}")));
        for verb in command.get_subcommands() {
            let words = format!("{above} {}", verb.get_name());
            let words = words.trim();
            if !verb.has_subcommands() {
                verbs.insert(words.to_owned());
            }
            collect(verb, words, verbs, options);
        }
    }

    /// The text between backticks in a line.
    fn code(line: &str) -> impl Iterator<Item = &str> {
        line.split('`').skip(1).step_by(2)
    }

    #[test]
    fn the_users_reference_has_every_verb_and_option_and_no_other() {
        let (mut verbs, mut options) = (BTreeSet::new(), BTreeSet::new());
        let command = help::command(&Formats::default());
        collect(&command, "", &mut verbs, &mut options);
        let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let reference = std::fs::read_to_string(reference).unwrap();
        // The options of cargo are not ours.
        let lines = reference
            .lines()
            .filter(|line| !line.starts_with("$ cargo "));
        let reference = lines.collect::<Vec<_>>().join("\n");

        let pieces: Vec<&str> = reference.lines().flat_map(code).collect();
        for verb in &verbs {
            let is_named = |piece: &&str| {
                let rest = piece
                    .strip_prefix("ckpt ")
                    .unwrap_or(piece)
                    .strip_prefix(verb.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            assert!(pieces.iter().any(is_named), "docs/cli.md lacks `{verb}`");
        }
        let is_of_option =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        let mut named = BTreeSet::new();
        for (at, _) in reference.match_indices("--") {
            let rest = &reference[at..];
            let end = rest
                .find(|letter| !is_of_option(letter))
                .unwrap_or(rest.len());
            let is_option = rest[2..end].starts_with(|letter: char| letter.is_ascii_lowercase());
            if is_option && reference[..at].ends_with([' ', '`', '|', '[', '(']) {
                named.insert(rest[..end].to_owned());
            }
        }
        assert_eq!(
            options.difference(&named).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "not in docs/cli.md"
        );
        assert_eq!(
            named.difference(&options).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "only in docs/cli.md"
        );

        // Each heading and each command in the text names a verb that exists.
        let first: BTreeSet<&str> = verbs
            .iter()
            .filter_map(|verb| verb.split(' ').next())
            .collect();
        let headings = reference.lines().filter(|line| line.starts_with("### `"));
        let headings = headings.flat_map(code);
        let commands = pieces
            .iter()
            .filter_map(|piece| piece.strip_prefix("ckpt "));
        for command in headings.chain(commands) {
            let verb = command.split(' ').next().unwrap_or_default();
            assert!(
                first.contains(verb) || verb.starts_with("--"),
                "{command:?}"
            );
        }
    }

    #[test]
    fn the_help_and_the_users_reference_have_the_same_exit_codes() {
        let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let reference = std::fs::read_to_string(reference).unwrap();
        let (_, table) = reference.split_once("## Exit codes").unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        let rows = table
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
        let rows: Vec<&str> = rows.filter(|code| code.parse::<u8>().is_ok()).collect();
        let help = EXIT_CODES
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let help: Vec<&str> = help.filter(|code| code.parse::<u8>().is_ok()).collect();
        assert_eq!(rows, ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(help, rows);
    }

    #[test]
    fn every_transient_state_is_on_its_formats_page() {
        for format in Formats::default().iter() {
            let transient = format.transient();
            let page = match format.name() {
                "task" => "builder-state",
                "story-pipeline-state" => "story-pipeline",
                own => own,
            };
            let path = format!(
                "{}/../../docs/formats/{page}.md",
                env!("CARGO_MANIFEST_DIR")
            );
            let page = std::fs::read_to_string(&path).unwrap();
            assert!(page.contains("## Transient states"), "{path}");
            for (code, pointer) in transient {
                let is_listed = |line: &str| {
                    line.contains(&format!("| `{code}` |"))
                        && line.contains(&format!("`{pointer}`"))
                };
                assert!(page.lines().any(is_listed), "{path}: {code} at {pointer}");
            }
        }
    }

    #[test]
    fn the_users_reference_lists_the_operations_of_every_format() {
        let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let reference = std::fs::read_to_string(reference).unwrap();
        for format in Formats::default().iter() {
            let operations = format.operations().iter();
            let operations: Vec<_> = operations.map(|name| format!("`{name}`")).collect();
            let row = format!("`{}` | {} |", format.name(), operations.join(", "));
            assert!(reference.contains(&row), "{row}");
        }
    }
}
