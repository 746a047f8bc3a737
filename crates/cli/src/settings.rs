//! Settings that the command line does not give: from the environment, else from `ckpt.toml`, else a default.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use agent_checkpoint::Fence;
use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::args::{Line, Verb};
use crate::backend::{is_address, shown};
use crate::config_file::{ConfigFile, Member};
use crate::failure::Failure;
use crate::global::{Global, Origin, Setting, span, variable, words};
use crate::named::{is_folder, real};

/// The value of a setting's environment variable; an empty one counts as unset.
pub(crate) fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(variable(name)).filter(|value| !value.is_empty())
}

/// A value that no flag gave.
enum Found<'f> {
    Variable(&'static str, OsString),
    Member(&'f ConfigFile, &'f Member),
}

impl Found<'_> {
    /// Parses the value like that of an option.
    fn parsed<T>(&self, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, Failure> {
        match self {
            Found::Variable(name, value) => value
                .to_str()
                .ok_or_else(|| "it is not UTF-8".to_owned())
                .and_then(parse)
                .map_err(|why| Failure::usage(format!("{}: {why}", variable(name)))),
            Found::Member(file, member) => {
                parse(&member.text).map_err(|why| file.wrong(member, &why))
            }
        }
    }
}

fn path(found: &Found<'_>) -> Result<PathBuf, Failure> {
    match found {
        Found::Variable(_, value) => Ok(value.into()),
        Found::Member(file, member) => file.path_of(member),
    }
}

fn text(found: &Found<'_>) -> Result<String, Failure> {
    found.parsed(words)
}

fn duration(found: &Found<'_>) -> Result<Duration, Failure> {
    found.parsed(span)
}

fn number<T: FromStr>(found: &Found<'_>) -> Result<T, Failure> {
    found.parsed(|text| {
        let number = text.parse();
        number.map_err(|_| "it is a whole number, such as 10".to_owned())
    })
}

/// The places in which a setting is looked up if no flag gives it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Places {
    Nowhere,
    Environment,
    File,
    Both,
}

/// The settings that are resolved so far.
#[derive(Default)]
struct Settled {
    file: Option<ConfigFile>,
    all: Vec<Setting>,
}

impl Settled {
    /// Resolves a setting that may have no value.
    fn settle<T>(
        &mut self,
        name: &'static str,
        value: &mut Option<T>,
        places: Places,
        read: impl Fn(&Found<'_>) -> Result<T, Failure>,
        show: impl Fn(&T) -> String,
    ) -> Result<(), Failure> {
        let from_variable = matches!(places, Places::Environment | Places::Both);
        let from_file = matches!(places, Places::File | Places::Both);
        let origin = if value.is_some() {
            Origin::Flag
        } else if let Some(found) = from_variable.then(|| environment(name)).flatten() {
            *value = Some(read(&Found::Variable(name, found))?);
            Origin::Variable
        } else if from_file
            && let Some(file) = &self.file
            && let Some(member) = file.member(name)
        {
            *value = Some(read(&Found::Member(file, member))?);
            Origin::File(file.place_of(member))
        } else {
            Origin::Default
        };
        self.all.push(Setting {
            name,
            value: value.as_ref().map(show),
            origin,
        });
        Ok(())
    }

    /// Resolves a setting that always has a value.
    fn settle_default<T: Clone>(
        &mut self,
        (name, is_flag): (&'static str, bool),
        value: &mut T,
        places: Places,
        read: impl Fn(&Found<'_>) -> Result<T, Failure>,
        show: impl Fn(&T) -> String,
    ) -> Result<(), Failure> {
        let mut found = is_flag.then(|| value.clone());
        self.settle(name, &mut found, places, read, &show)?;
        *value = found.unwrap_or_else(|| value.clone());
        if let Some(last) = self.all.last_mut() {
            last.value = Some(show(value));
        }
        Ok(())
    }

    /// Whether an option or a variable overrides the store of the file.
    fn is_store_of_file_replaced(&self) -> bool {
        let file = self.file.as_ref();
        let store = self.all.iter().find(|setting| setting.name == "store");
        file.is_some_and(|file| file.member("store").is_some())
            && store.is_some_and(|store| matches!(store.origin, Origin::Flag | Origin::Variable))
    }

    fn thresholds(&mut self, values: [&mut Option<Duration>; 3]) -> Result<(), Failure> {
        let show = |time: &Duration| humantime::format_duration(*time).to_string();
        for (name, value) in ["late", "stalled", "stuck"].into_iter().zip(values) {
            self.settle(name, value, Places::File, duration, show)?;
        }
        Ok(())
    }

    /// Resolves the settings of a prompt. The file's template is for the prompt only, not for other messages.
    fn prompt(
        &mut self,
        message: &str,
        template: &mut Option<PathBuf>,
        templates: &mut Option<PathBuf>,
        budget_tokens: &mut Option<usize>,
    ) -> Result<(), Failure> {
        let show = |path: &PathBuf| path.display().to_string();
        let place = match message == PROMPT && templates.is_none() {
            true => Places::File,
            false => Places::Nowhere,
        };
        self.settle("template", template, place, path, show)?;
        self.settle("templates", templates, Places::File, path, show)?;
        let show = usize::to_string;
        self.settle("budget-tokens", budget_tokens, Places::File, number, show)
    }
}

/// The message that `ckpt resume` prints unless another is named.
const PROMPT: &str = "resume";

/// Completes a command line from the environment and `ckpt.toml`.
pub(crate) fn settle(line: &mut Line, matches: &ArgMatches) -> Result<(), Failure> {
    let (global, verb) = match line {
        Line::Common(args) => (&mut args.global, Some(&mut args.verb)),
        Line::Own(global, _) => (&mut **global, None),
    };
    // Checked here because the option parser does not see conflicts with options before the verb.
    if matches!(verb, Some(Verb::Claim { export: true, .. })) && (global.json || global.quiet) {
        return Err(Failure::usage(
            "--export prints lines for a shell; omit --json and --quiet",
        ));
    }
    // These need no checkpoint and must work even if a settings file is wrong.
    if let Some(
        Verb::Guide { .. } | Verb::Schema { .. } | Verb::Completions { .. } | Verb::Man { .. },
    ) = verb
    {
        return Ok(());
    }
    let is_flag = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let mut settled = Settled {
        file: ConfigFile::find()?,
        all: Vec::new(),
    };
    // An explicit place overrides settings.
    let is_named = verb
        .as_deref()
        .is_some_and(|verb| names_place(verb, global));
    let is_of_old = verb.as_deref().is_some_and(is_of_old);
    let takes_key = !is_of_old
        && !matches!(
            verb,
            Some(Verb::Status(_) | Verb::HtmlReport(_) | Verb::List { .. } | Verb::Doctor { .. })
        );
    let unless_named = |places| if is_named { Places::Nowhere } else { places };
    let file = match verb.as_deref() {
        Some(Verb::Set { words, .. }) if is_named => words.first().map(Path::new),
        verb => verb.and_then(Verb::file),
    };
    let fence = match is_of_old || is_of_another(file, global) {
        true => Places::Nowhere,
        false => Places::Environment,
    };
    let show = |path: &PathBuf| shown(path).display().to_string();
    let as_it_is = String::clone;
    let store = unless_named(Places::Both);
    settled.settle("store", &mut global.store, store, path, show)?;
    let key = match takes_key {
        true => unless_named(Places::Environment),
        false => Places::Nowhere,
    };
    settled.settle("key", &mut global.key, key, text, as_it_is)?;
    let format = match is_named {
        // Each of the two stores has its own settings.
        true if matches!(verb, Some(Verb::Copy { .. })) => Places::Nowhere,
        true => Places::Environment,
        // The format in the file belongs to the store in the file.
        false if settled.is_store_of_file_replaced() => Places::Environment,
        false => Places::Both,
    };
    settled.settle("format", &mut global.format, format, text, as_it_is)?;
    let root = ("root", is_flag("root"));
    settled.settle_default(root, &mut global.root, Places::Both, path, show)?;
    let own = Places::Environment;
    settled.settle("agent", &mut global.agent, own, text, as_it_is)?;
    settled.settle("session", &mut global.session, own, text, as_it_is)?;
    settled.settle("fence", &mut global.fence, fence, number, Fence::to_string)?;
    let most = ("max-bytes", is_flag("max_bytes"));
    let bytes = &mut global.max_bytes;
    settled.settle_default(most, bytes, Places::File, number, u64::to_string)?;
    let redact = ("redact", global.redact);
    let switch = |found: &Found<'_>| found.parsed(|text| Ok(text == "true"));
    let is_on = &mut global.redact;
    settled.settle_default(redact, is_on, Places::File, switch, bool::to_string)?;
    let mut verb = verb;
    if let Some(scope) = verb.as_deref_mut().and_then(Verb::scope_mut) {
        settled.thresholds([&mut scope.late, &mut scope.stalled, &mut scope.stuck])?;
    }
    match verb {
        Some(Verb::Resume {
            message,
            template,
            templates,
            budget_tokens,
            ..
        }) => settled.prompt(message, template, templates, budget_tokens)?,
        Some(Verb::Hook(hook)) => settled.prompt(
            PROMPT,
            &mut hook.template,
            &mut hook.templates,
            &mut hook.budget_tokens,
        )?,
        Some(Verb::Config) => {
            settled.thresholds([&mut None, &mut None, &mut None])?;
            settled.prompt(PROMPT, &mut None, &mut None, &mut None)?;
        }
        _ => {}
    }
    global.settings = settled.all;
    // A key from the environment must not prevent naming a single file.
    if global.origin("key") == &Origin::Variable
        && global.origin("store") != &Origin::Variable
        && let Some(store) = &global.store
        && !is_address(store)
        && !is_folder(store, global)
    {
        global.key = None;
    }
    Ok(())
}

/// Whether the arguments of a verb name a checkpoint or store.
fn names_place(verb: &Verb, global: &Global) -> bool {
    match verb {
        Verb::Detect { files } | Verb::Validate { files } => !files.is_empty(),
        Verb::Status(_) | Verb::HtmlReport(_) => {
            verb.scope().is_some_and(|scope| !scope.places.is_empty())
        }
        Verb::Copy { .. } => true,
        Verb::Set { words, .. } => {
            global.store.is_none() && words.first().is_some_and(|word| !is_assignment(word))
        }
        verb => verb.file().is_some(),
    }
}

/// Whether a verb forgets all old tasks. It then ignores the key and fence of the environment.
fn is_of_old(verb: &Verb) -> bool {
    matches!(verb, Verb::Forget { old, .. }
        if [old.ended, old.taken_over, old.older_than].iter().any(Option::is_some))
}

/// Whether the command line names a different checkpoint than the environment. The fence of the environment does not
/// belong to it.
fn is_of_another(file: Option<&Path>, global: &Global) -> bool {
    let differs = |name, given: Option<&OsStr>| {
        let known = environment(name);
        given.is_some_and(|given| known.is_some_and(|known| known != given))
    };
    let is_elsewhere = match (file.or(global.store.as_deref()), environment("store")) {
        (Some(place), Some(known)) => real(place) != real(Path::new(&known)),
        (place, None) => place.is_some() && file.is_some() && environment("key").is_some(),
        (None, Some(_)) => false,
    };
    is_elsewhere || differs("key", global.key.as_deref().map(OsStr::new))
}

/// Whether a word looks like an assignment and not like a file.
pub(crate) fn is_assignment(word: &str) -> bool {
    word.starts_with(['/', '=']) && word.contains('=')
}
