//! An error of the library as a failure, with advice about the checkpoint that the command line names.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use agent_checkpoint::formats::Format;
use agent_checkpoint::json::{Corrupt, CorruptCode};
use agent_checkpoint::{Error, ErrorKind, Fenced};

use crate::address::Target;
use crate::backend::is_address;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::global::Global;
use crate::{read, stdin};

/// The options of the command line, for advice about the checkpoint that they name.
static GLOBAL: OnceLock<Global> = OnceLock::new();

/// Sets the options that advice refers to from now on.
pub(crate) fn advise_for(global: &Global) {
    GLOBAL.get_or_init(|| global.clone());
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let mut message = chain(&error);
        if let ErrorKind::Corrupt(corrupt) = error.kind() {
            let advice = advice(&error, corrupt);
            message = format!("{message}; {advice}");
        }
        message.push_str(option(&error));
        Failure {
            exit: Exit::of(&error),
            message,
            code: error.code(),
            file: error.path().map(Path::to_path_buf),
            key: error.key().map(ToString::to_string),
            report: error.report(),
            source: Some(Arc::new(error)),
        }
    }
}

/// Advice for the user of a corrupt file.
fn advice(error: &Error, corrupt: &Corrupt) -> String {
    let is_conflict = corrupt.code == CorruptCode::MergeConflict;
    let is_nothing = matches!(corrupt.code, CorruptCode::Empty | CorruptCode::NulBytes);
    if !is_conflict && error.path().is_some_and(stdin::is_input) {
        return match is_nothing {
            true => "check what writes it".to_owned(),
            false => "save it to a file, then run `ckpt recover --salvage` to continue with its good part"
                .to_owned(),
        };
    }
    let place = GLOBAL.get().zip(error.path());
    let found = place.and_then(
        |(global, path)| match global.store.as_deref().map(is_address) {
            Some(true) => Some(Target::to_look_at(None, global).ok()?.format),
            _ => read::format_of_damaged(path, error, global).ok()?,
        },
    );
    let named = place.and_then(|(global, _)| global.formats.get(global.format.as_ref()?).ok());
    let format = named.or(found.as_ref());
    let kept = place.and_then(|(global, path)| Target::kept(path, format, global));
    if is_conflict {
        let or = kept.map_or_else(String::new, |entry| {
            format!(", or run `ckpt recover` to continue with its newest earlier state, {entry}")
        });
        return format!("nothing was changed; edit the file, then run this again{or}");
    }
    let option = if found.is_some() { "" } else { " --format F" };
    let is_host = format.is_some_and(Format::is_host);
    // A host file holds more than checkpoints, so it does not begin anew.
    let ways = [
        (!is_nothing, "--salvage", "the good part of this one"),
        (!is_host, "--fresh", "none"),
    ];
    let ways = ways.into_iter().filter(|(works, ..)| *works);
    match kept {
        Some(entry) => {
            let ways = ways.map(|(_, way, with)| format!(", with `{way}` with {with}"));
            format!(
                "nothing was changed; `ckpt recover` continues with its newest earlier state, {entry}{}; `ckpt history` lists the states",
                ways.collect::<String>()
            )
        }
        None => {
            let ways: Vec<String> = ways
                .enumerate()
                .map(|(at, (_, way, with))| {
                    let goes_on = if at == 0 { " goes on" } else { "" };
                    format!("`ckpt recover {way}{option}`{goes_on} with {with}")
                })
                .collect();
            let ways = match ways.is_empty() {
                true => "restore it from another place, such as git".to_owned(),
                false => ways.join(", "),
            };
            format!("nothing was changed, and no earlier state of it is kept; {ways}")
        }
    }
}

/// Whether this is the owner in whose name the command runs.
fn is_own(claimed: &str) -> bool {
    let own = GLOBAL.get().and_then(Global::owner);
    own.as_deref() == Some(claimed)
}

/// The command-line option for the advice of a library error.
fn option(error: &Error) -> &'static str {
    let claims = Path::new(".agent-checkpoint/claims");
    let is_of_claims = |path: &Path| path.parent().is_some_and(|folder| folder.ends_with(claims));
    match error.kind() {
        ErrorKind::Transition { .. } => " (--force)",
        ErrorKind::WouldLose { .. } => " (--allow-loss)",
        ErrorKind::TooLarge { .. } => " (--max-bytes N)",
        ErrorKind::InvalidKey { .. } => "; name the task with --key, or its file",
        ErrorKind::Other {
            code: "no-such-slot",
            ..
        } => "; name another with --slot",
        ErrorKind::UnknownFormat { name: None, .. } => " (--format F)",
        ErrorKind::Ambiguous { what, .. } if what.starts_with("format") => " with --format",
        ErrorKind::Ambiguous { what, .. } if what.starts_with("checkpoint") => " with --slot",
        ErrorKind::Claimed { owner, .. } if is_own(owner) => {
            "; the claim is your own: pass its fence with --fence N, as `ckpt claim` printed it"
        }
        ErrorKind::Claimed { .. } => {
            "; pass the fence with --fence N, or take the task over with `ckpt claim --agent A --take-over` if its owner is known to be dead"
        }
        ErrorKind::Fenced { why, .. } => match why {
            Fenced::Expired { .. } => " (`ckpt claim --renew --fence N`)",
            Fenced::Released { .. } | Fenced::Unknown => " (`ckpt claim --agent A`)",
            _ => "",
        },
        ErrorKind::Unreadable { .. } if error.path().is_some_and(is_of_claims) => {
            " (`ckpt claim --agent A --take-over`)"
        }
        _ => "",
    }
}
