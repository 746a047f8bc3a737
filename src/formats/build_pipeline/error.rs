//! The error of a failed build, in whatever form it is written.
//!
//! The format has an object. Agents also write a plain text, or a line number as a text. Such an error is read,
//! rendered and cleared like any other, and is reported as a violation of type besides.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::BuildError;
use crate::checkpoint::Inspection;
use crate::formats::Number;
use crate::is_blank;
use crate::json::Code;

/// The members, in the order in which they are written.
const MEMBERS: [&str; 4] = ["workstream", "message", "file", "line"];

/// The text for a failure without a description.
pub(super) const UNSAID: &str = "the report does not say what failed";

/// How an error is written in the file.
#[derive(PartialEq)]
enum Form {
    Whole(Value),
    Members(Vec<(&'static str, Value)>),
}

impl BuildError {
    fn from_value(value: Value) -> BuildError {
        let Value::Object(mut members) = value else {
            return BuildError {
                other: Some(value),
                ..BuildError::default()
            };
        };
        let mut text = |name: &str| {
            let text = members.get(name)?.as_str()?.to_owned();
            members.remove(name);
            Some(text)
        };
        let (workstream, message, file) = (text("workstream"), text("message"), text("file"));
        let line = members.get("line").and_then(Value::as_f64);
        if line.is_some() {
            members.remove("line");
        }
        // Keeps the members of the format that have another type; undeclared members stay in the file without this.
        members.retain(|name, value| MEMBERS.contains(&name.as_str()) && !value.is_null());
        BuildError {
            workstream,
            message,
            file,
            line,
            other: (!members.is_empty()).then_some(Value::Object(members)),
        }
    }

    fn form(&self) -> Form {
        let others = match &self.other {
            Some(Value::Object(members)) => Some(members),
            _ => None,
        };
        let typed = |name: &str| match name {
            "workstream" => self.workstream.as_deref().map(Value::from),
            "message" => self.message.as_deref().map(Value::from),
            "file" => self.file.as_deref().map(Value::from),
            _ => self
                .line
                .map(|line| serde_json::to_value(Number::from(line)).unwrap_or_default()),
        };
        let member = |name: &'static str| {
            let other = || others.and_then(|members| members.get(name).cloned());
            Some((name, typed(name).or_else(other)?))
        };
        let mut members: Vec<_> = MEMBERS.into_iter().filter_map(member).collect();
        match &self.other {
            None | Some(Value::Object(_)) => Form::Members(members),
            Some(whole) if members.is_empty() => Form::Whole(whole.clone()),
            Some(whole) => {
                // A member was added to an error that was a plain text: the text becomes the message.
                if self.message.is_none() {
                    members.push(("message", whole.clone()));
                }
                Form::Members(members)
            }
        }
    }

    fn other_member(&self, name: &str) -> Option<String> {
        self.other.as_ref()?.get(name).map(plain)
    }

    /// Whether the error describes what failed.
    pub(super) fn says_something(&self) -> bool {
        let texts = [&self.workstream, &self.message, &self.file];
        self.other.is_some() || texts.into_iter().flatten().any(|text| !is_blank(text))
    }

    /// The error as a sentence: `WS3: no such property (services/player/index.ts:45)`.
    #[must_use]
    pub fn text(&self) -> String {
        let said =
            |typed: Option<&String>, name| typed.cloned().or_else(|| self.other_member(name));
        let whole = self.other.as_ref().filter(|other| !other.is_object());
        let message = said(self.message.as_ref(), "message").or_else(|| whole.map(plain));
        let message = message.filter(|message| !is_blank(message));
        let mut text = match (said(self.workstream.as_ref(), "workstream"), message) {
            (Some(workstream), Some(message)) => format!("{workstream}: {message}"),
            (Some(text), None) | (None, Some(text)) => text,
            (None, None) => UNSAID.to_owned(),
        };
        let line = self.line.map(super::states::plain);
        let line = line.or_else(|| self.other_member("line"));
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        if let Some(file) = said(self.file.as_ref(), "file") {
            text.push_str(&format!(" ({file}{line})"));
        }
        text
    }
}

impl PartialEq for BuildError {
    /// Two errors are equal when they are written in the same way.
    fn eq(&self, other: &BuildError) -> bool {
        self.form() == other.form()
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BuildError>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(BuildError::from_value))
}

#[allow(clippy::ref_option, reason = "serde gives the field by reference")]
pub(super) fn write<S: Serializer>(
    error: &Option<BuildError>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match error.as_ref().map(BuildError::form) {
        None => serializer.serialize_none(),
        Some(Form::Whole(value)) => value.serialize(serializer),
        Some(Form::Members(members)) => serializer.collect_map(members),
    }
}

/// Reports the members whose type is not that of the format.
pub(super) fn inspect(error: &BuildError, inspection: &mut Inspection<'_>) {
    let Some(other) = &error.other else { return };
    let Value::Object(members) = other else {
        let message = format!("{other} is not an object with workstream and message");
        return inspection.report("/error", Code::WRONG_TYPE, message);
    };
    for name in MEMBERS {
        if let Some(value) = members.get(name) {
            let message = format!(
                "{value} has the wrong type: line is a number, the other members are texts"
            );
            inspection.report(&format!("/error/{name}"), Code::WRONG_TYPE, message);
        }
    }
}
