//! Limits of an answer: no secrets, no hidden characters, and no more text than a model can use.

use std::sync::OnceLock;

use agent_checkpoint::{Redaction, visible};
use serde_json::Value;

/// The longest text of a member, in bytes.
const MOST_OF_TEXT: usize = 2_000;

/// The longest prompt or page, in bytes.
pub(crate) const MOST_OF_PAGE: usize = 128 * 1024;

/// The longest text of an answer, in bytes: a prompt, and the text around it.
pub(crate) const MOST_OF_ANSWER: usize = MOST_OF_PAGE + 32 * 1024;

/// The longest list.
pub(crate) const MOST_LISTED: usize = 100;

/// A text made safe for an answer, of at most `most` bytes.
pub(crate) fn text(text: &str, most: usize) -> String {
    static SECRETS: OnceLock<Redaction> = OnceLock::new();
    let redacted = SECRETS.get_or_init(Redaction::secrets).redact("", text);
    cut(visible(redacted.as_deref().unwrap_or(text)), most)
}

/// A text made safe for an answer, in one line.
pub(crate) fn line(said: &str) -> String {
    text(said, MOST_OF_TEXT).replace('\n', " ")
}

/// A value whose texts and lists are all within the limits.
pub(crate) fn value(value: Value) -> Value {
    within(value, MOST_OF_TEXT)
}

fn within(value: Value, most: usize) -> Value {
    match value {
        Value::String(said) => text(&said, most).into(),
        Value::Array(all) => {
            let left_out = all.len().saturating_sub(MOST_LISTED);
            let is_text = all.first().is_some_and(Value::is_string);
            let listed = all.into_iter().take(MOST_LISTED);
            let mut listed: Vec<Value> = listed.map(|each| within(each, most)).collect();
            if left_out > 0 && is_text {
                listed.push(format!("… {left_out} more are left out").into());
            }
            listed.into()
        }
        Value::Object(members) => {
            let bounded = members.into_iter().map(|(name, member)| {
                let most = match name.as_str() {
                    "prompt" => MOST_OF_PAGE,
                    _ => MOST_OF_TEXT,
                };
                (name, within(member, most))
            });
            Value::Object(bounded.collect())
        }
        other => other,
    }
}

fn cut(mut text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at));
    let end = end.unwrap_or_default();
    let left_out = text.len() - end;
    text.truncate(end);
    text.push_str(&format!("… [{left_out} more bytes are left out]"));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_out_is_said() {
        assert_eq!(text("päge", 2), "p… [4 more bytes are left out]");
        let many: Vec<String> = (0..103).map(|number| number.to_string()).collect();
        let bounded = value(json!({ "steps": many }));
        let listed = bounded["steps"].as_array().unwrap();
        assert_eq!(listed.len(), MOST_LISTED + 1);
        assert_eq!(listed[MOST_LISTED], "… 3 more are left out");
    }

    #[test]
    fn secrets_and_hidden_letters_are_not_shown() {
        let shown = value(
            json!([{ "text": "ghp_0123456789abcdefghijABCDEFGHIJ012345 \u{202e}x\u{1b}[2J" }]),
        );
        assert_eq!(
            shown[0]["text"],
            "[redacted: github-token] \\u{202e}x\\u{1b}[2J"
        );
    }
}
