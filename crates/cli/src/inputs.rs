//! Options and verbs that formats add to the command, from the registry.

use std::path::{Path, PathBuf};

use agent_checkpoint::Error;
use agent_checkpoint::formats::{
    CheckpointFile, Format, Formats, Given, GivenValue, Input, InputKind, Inputs, OwnVerb,
};
use agent_checkpoint::json::Document;
use agent_checkpoint::store::read_document;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::failure::Failure;
use crate::global::{Global, words, worked};
use crate::output::Outcome;

/// An option of a verb, and the formats that have it.
struct Declared {
    verb: &'static str,
    input: Input,
    help: String,
    formats: Vec<&'static str>,
}

/// The options of all formats, one for each verb and name.
fn declared(formats: &Formats) -> Vec<Declared> {
    let mut all: Vec<Declared> = Vec::new();
    for format in formats.iter() {
        let own = |verb: &'static OwnVerb| verb.inputs.iter().map(|input| (verb.name, input));
        let common = format.inputs().iter();
        let common = common.flat_map(|input| input.verbs.iter().map(move |verb| (*verb, input)));
        for (verb, input) in common.chain(format.verbs().iter().flat_map(own)) {
            let same = |known: &&mut Declared| known.verb == verb && known.input.name == input.name;
            match all.iter_mut().find(same) {
                Some(known) => {
                    if !known.help.contains(input.help) {
                        known.help.push_str(&format!("; {}", input.help));
                    }
                    known.formats.push(format.name());
                }
                None => all.push(Declared {
                    verb,
                    input: *input,
                    help: input.help.to_owned(),
                    formats: vec![format.name()],
                }),
            }
        }
    }
    all
}

/// The command with the options and verbs of all formats.
pub(crate) fn command(mut command: Command, formats: &Formats) -> Command {
    for verb in formats.iter().flat_map(|format| format.verbs()) {
        if below(&mut command, verb.name).is_some() {
            continue;
        }
        let (group, name) = verb.name.split_once(' ').unwrap_or(("", verb.name));
        let (short, long) = verb.help.split_once("\n\n").unwrap_or((verb.help, ""));
        let mut new = Command::new(name).about(short);
        if !long.is_empty() {
            new = new.long_about(verb.help);
        }
        if !group.is_empty() && command.find_subcommand(group).is_none() {
            let empty = Command::new(group).about(verb.group);
            let empty = empty.subcommand_required(true).arg_required_else_help(true);
            command = command.subcommand(empty);
        }
        match below(&mut command, group) {
            Some(group) => *group = std::mem::take(group).subcommand(new),
            None => command = command.subcommand(new),
        }
    }
    for option in declared(formats) {
        if let Some(verb) = below(&mut command, option.verb) {
            *verb = std::mem::take(verb).arg(arg(&option));
        }
    }
    command
}

/// The subcommand with these words.
pub(crate) fn below<'c>(command: &'c mut Command, words: &str) -> Option<&'c mut Command> {
    words
        .split(' ')
        .try_fold(command, |above, word| above.find_subcommand_mut(word))
}

fn arg(option: &Declared) -> Arg {
    let Input { name, kind, .. } = option.input;
    let help = match kind {
        InputKind::Argument(_) => option.help.clone(),
        _ => format!("{} ({})", option.help, option.formats.join(", ")),
    };
    let arg = Arg::new(name).help(help);
    let arg = arg.conflicts_with_all(option.input.excludes);
    let named = |value_name| arg.clone().long(name).value_name(value_name);
    match kind {
        InputKind::Argument(required) => arg.required(required).value_parser(words),
        InputKind::Flag => arg.long(name).action(ArgAction::SetTrue),
        InputKind::Texts => named("TEXT")
            .num_args(1..)
            .action(ArgAction::Append)
            .value_parser(words),
        InputKind::Number(least, most) => named("N")
            .allow_negative_numbers(true)
            .value_parser(value_parser!(u64).range(least..=most)),
        InputKind::OneOf(known) => named("WORD").value_parser(PossibleValuesParser::new(known)),
        InputKind::Time => named("TIME").value_parser(worked),
        InputKind::File => named("FILE").value_parser(value_parser!(PathBuf)),
        _ => named("TEXT").value_parser(words),
    }
}

/// The words of the verb, and the values of the formats' own options.
pub(crate) fn given(matches: &ArgMatches, formats: &Formats) -> (String, Given) {
    let (mut words, mut inner) = (Vec::new(), matches);
    while let Some((word, below)) = inner.subcommand() {
        words.push(word);
        inner = below;
    }
    let verb = words.join(" ");
    let mut given = Given::default();
    for option in declared(formats)
        .iter()
        .filter(|option| option.verb == verb)
    {
        let Input { name, kind, .. } = option.input;
        let text = |name| inner.get_one::<String>(name).cloned();
        let value = match kind {
            InputKind::Flag => inner.get_flag(name).then_some(GivenValue::Flag),
            InputKind::Texts => inner
                .get_many::<String>(name)
                .map(|texts| GivenValue::Texts(texts.cloned().collect())),
            InputKind::Number(..) => inner.get_one(name).copied().map(GivenValue::Number),
            InputKind::Time => inner.get_one(name).copied().map(GivenValue::Time),
            InputKind::File => inner.get_one(name).cloned().map(GivenValue::File),
            _ => text(name).map(GivenValue::Text),
        };
        if let Some(value) = value {
            given.set(name, value);
        }
    }
    (verb, given)
}

/// A function that reads files for formats.
pub(crate) fn reader(global: &Global) -> impl Fn(&Path) -> Result<Option<Document>, Error> {
    let most = global.max_bytes;
    move |path: &Path| read_document(path, most)
}

/// The context for the rules of a format when they judge this file, which messages call `place`. Options that do not
/// apply are noted.
pub(crate) fn of_file(
    format: &Format,
    (place, file): (&Path, &Path),
    global: &Global,
    outcome: &mut Outcome,
) -> Result<Inputs, Failure> {
    let read = reader(global);
    let file = CheckpointFile::new(file, &read).in_project(&global.root);
    // Options for other formats must be valid too.
    for other in global
        .formats
        .iter()
        .filter(|other| other.name() != format.name() && takes_given(other, global))
    {
        other.take_inputs(&global.given, &file)?;
    }
    let inputs = format.take_inputs(&global.given, &file)?;
    let place = place.display();
    for note in inputs.notes() {
        outcome.note(format!("{place}: {note}"));
    }
    for name in unused(format, global) {
        let declared = declared(&global.formats);
        let known = declared.iter().find(|option| option.input.name == name);
        let judged = known.map_or_else(String::new, |option| option.formats.join(", "));
        outcome.note(format!(
            "{place}: --{name} judges {judged} only, and this is {}",
            format.name()
        ));
    }
    Ok(inputs)
}

fn takes_given(format: &Format, global: &Global) -> bool {
    unused(format, global).count() < global.given.names().count()
}

/// The names of given options that this format does not take.
pub(crate) fn unused<'g>(format: &'g Format, global: &'g Global) -> impl Iterator<Item = &'g str> {
    let takes = |name: &str| format.inputs().iter().any(|input| input.name == name);
    global.given.names().filter(move |name| !takes(name))
}
