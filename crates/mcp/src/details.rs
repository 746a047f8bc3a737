//! The details of a first checkpoint besides its plan: the format's own options of `ckpt start`, except those that name
//! files.

use agent_checkpoint::formats::{Format, Formats, Given, GivenValue, Input, InputKind};
use serde_json::{Map, Value, json};

use crate::bounds;
use crate::failed::Failed;

/// The details that a format takes.
fn of(format: &Format) -> impl Iterator<Item = &'static Input> {
    let is_detail = |input: &&Input| {
        let is_file = matches!(input.kind, InputKind::File | InputKind::Argument(_));
        input.verbs.contains(&"start") && !is_file
    };
    format.inputs().iter().filter(is_detail)
}

/// The schema of the details of a format, or of all.
pub(crate) fn schema(formats: &Formats, format: Option<&Format>) -> Value {
    let all = formats.iter().filter(|other| {
        let is_it = |format: &Format| format.name() == other.name();
        format.is_none_or(is_it)
    });
    let mut members = Map::new();
    for (of_format, input) in all.flat_map(|format| of(format).map(move |input| (format, input))) {
        let mut member = kind(input.kind);
        let mut help = input.help.replace("--plan", "plan");
        if format.is_none() {
            help.push_str(&format!(" ({})", of_format.name()));
        }
        if let Some(known) = members.get(input.name) {
            let known = known["description"].as_str().unwrap_or_default();
            help = format!("{known}; {help}");
        }
        member["description"] = help.into();
        members.insert(input.name.to_owned(), member);
    }
    json!({
        "type": "object",
        "description": "What a first checkpoint of this format has besides the plan. Used only where the task has no checkpoint yet.",
        "properties": members,
        "additionalProperties": false,
    })
}

fn kind(kind: InputKind) -> Value {
    match kind {
        InputKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        InputKind::Number(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        InputKind::OneOf(known) => json!({ "type": "string", "enum": known }),
        InputKind::Flag => json!({ "type": "boolean" }),
        _ => json!({ "type": "string" }),
    }
}

/// Reads the details of a first checkpoint.
pub(crate) fn read(format: &Format, details: Map<String, Value>) -> Result<Given, Failed> {
    let mut given = Given::default();
    for (name, value) in details {
        let Some(input) = of(format).find(|input| input.name == name) else {
            let known: Vec<&str> = of(format).map(|input| input.name).collect();
            let known = match known.is_empty() {
                true => "none".to_owned(),
                false => known.join(", "),
            };
            return Err(Failed::input(format!(
                "details has {:?}, and {} takes {known}; nothing was written",
                bounds::line(&name),
                format.name()
            )));
        };
        let value = given_value(input.kind, &value).ok_or_else(|| {
            let schema = kind(input.kind);
            Failed::input(format!(
                "details.{name} is not as its schema says ({schema}); nothing was written"
            ))
        })?;
        if let Some(value) = value {
            given.set(name, value);
        }
    }
    Ok(given)
}

/// The value of an input: `Some(None)` for a flag that is `false`, `None` for a value of the wrong kind.
fn given_value(kind: InputKind, value: &Value) -> Option<Option<GivenValue>> {
    let text = |value: &Value| {
        let text = value
            .as_str()
            .filter(|text| !agent_checkpoint::is_blank(text));
        text.map(str::to_owned)
    };
    Some(match kind {
        InputKind::Text => Some(GivenValue::Text(text(value)?)),
        InputKind::OneOf(known) => {
            let word = text(value).filter(|word| known.contains(&word.as_str()));
            Some(GivenValue::Text(word?))
        }
        InputKind::Texts => {
            let texts = value.as_array()?.iter().map(text);
            Some(GivenValue::Texts(texts.collect::<Option<Vec<_>>>()?))
        }
        InputKind::Number(least, most) => {
            let number = value
                .as_u64()
                .filter(|number| (least..=most).contains(number));
            Some(GivenValue::Number(number?))
        }
        InputKind::Flag => value.as_bool()?.then_some(GivenValue::Flag),
        _ => return None,
    })
}

/// An error that names members of the call instead of options of the command.
pub(crate) fn in_members(format: &Format, mut failed: Failed) -> Failed {
    failed.replace("--plan", "plan");
    for input in format
        .inputs()
        .iter()
        .filter(|input| matches!(input.kind, InputKind::File))
    {
        let (option, name) = (format!("(--{})", input.name), input.name);
        let instead = format!(
            "; no call names a file, so the user begins it with `ckpt start --{name} FILE`"
        );
        failed.replace(&format!(" {option}"), &instead);
    }
    for input in of(format) {
        failed.replace(
            &format!("--{}", input.name),
            &format!("details.{}", input.name),
        );
    }
    failed
}
