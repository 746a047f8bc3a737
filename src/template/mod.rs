//! Renders texts from templates: prompts, and the messages of the protocols.
//!
//! Every value that a template shows is data. It is [quoted](crate::shown::in_markdown) automatically, so no template
//! can forget it.

mod built_in;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use minijinja::value::{Serde, ValueKind};
use minijinja::{Environment, ErrorKind as Kind, Output, State, UndefinedBehavior, Value};
use serde::Serialize;

pub(crate) use built_in::{BUILT_IN, message};

use crate::checkpoint::{Error, Result};
use crate::json::quoted_short;
use crate::redaction::Redaction;
use crate::shown;

/// The bytes of rendered text, and the units of fuel, that every template may use. A unit of fuel is one step, or 64
/// bytes held at once.
const BASE: usize = 200_000;

/// The allowance for each byte of the values: enough to show each of them several times.
const PER_BYTE: usize = 16;

/// Checks whether the source is a valid template.
pub(crate) fn check(name: &str, source: &str) -> Result<()> {
    environment(name, source).map(|_| ())
}

/// The source of a template.
#[derive(Clone, Copy)]
pub(crate) enum Source<'s> {
    /// A built-in template, which is compiled once.
    BuiltIn(&'static str),
    Own(&'s str),
}

impl<'s> Source<'s> {
    pub(crate) fn text(self) -> &'s str {
        match self {
            Source::BuiltIn(source) | Source::Own(source) => source,
        }
    }
}

/// Renders a template with these values. The text ends with a line end if the source does.
pub(crate) fn render(
    name: &str,
    source: Source<'_>,
    values: &impl Serialize,
    redaction: Option<&Redaction>,
) -> Result<String> {
    let mut size = Counted(0);
    let _counted = serde_json::to_writer(&mut size, values);
    let bound = BASE.saturating_add(size.0.saturating_mul(PER_BYTE));
    let mut environment = match source {
        Source::BuiltIn(source) => built_in(name, source)?,
        Source::Own(source) => environment(name, source)?,
    };
    let source = source.text();
    let redaction = redaction.cloned();
    environment
        .set_formatter(move |out, state, value| write_value(out, state, value, redaction.as_ref()));
    environment.set_fuel(u64::try_from(bound).ok());
    let template = environment
        .get_template(TEMPLATE)
        .map_err(|error| template_error(name, source, &error))?;
    let mut out = Bounded::new(bound);
    let rendered = template
        .render_captured_to(Serde(values), &mut out)
        .map(|_| ());
    if out.is_full() {
        return Err(Error::template(format!(
            "`{name}`: renders more than {bound} bytes"
        )));
    }
    rendered.map_err(|error| template_error(name, source, &error))?;
    let mut text = out.into_text();
    // The renderer omits the final line end of the template.
    if source.ends_with('\n') && !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// A writer that counts bytes.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The extension decides about escaping: for Markdown there is no HTML escaping.
const TEMPLATE: &str = "template.md";

/// The compiled built-in templates, by source. Cloning one copies no data.
static COMPILED: Mutex<BTreeMap<&str, Environment<'static>>> = Mutex::new(BTreeMap::new());

fn built_in(name: &str, source: &'static str) -> Result<Environment<'static>> {
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = compiled.get(source) {
        return Ok(known.clone());
    }
    let environment = environment(name, source)?;
    compiled.insert(source, environment.clone());
    Ok(environment)
}

fn environment<'s>(name: &str, source: &'s str) -> Result<Environment<'s>> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("path", |path: String| shown::path(&path));
    // The results of these filters count as safe, but are safe only for HTML.
    environment.remove_filter("escape");
    environment.remove_filter("e");
    environment
        .add_template(TEMPLATE, source)
        .map_err(|error| template_error(name, source, &error))?;
    Ok(environment)
}

/// Writes a value: numbers unchanged, texts redacted and quoted.
fn write_value(
    out: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
    redaction: Option<&Redaction>,
) -> std::result::Result<(), minijinja::Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None | ValueKind::Bool | ValueKind::Number => {
            return minijinja::escape_formatter(out, state, value);
        }
        _ => {}
    }
    let text = value.to_string();
    let redacted = redaction.and_then(|redaction| redaction.redact("", &text));
    let text = redacted.unwrap_or(text);
    // With the `safe` filter a template vouches that the text does not come from a checkpoint.
    let text = if value.is_safe() {
        text
    } else {
        shown::in_markdown(&text)
    };
    out.write_str(&text)
        .map_err(|error| minijinja::Error::new(Kind::WriteFailure, error.to_string()))
}

fn template_error(name: &str, source: &str, error: &minijinja::Error) -> Error {
    let line = error
        .line()
        .map(|line| format!(", line {line}"))
        .unwrap_or_default();
    let detail = error
        .detail()
        .map(|detail| format!(": {detail}"))
        .unwrap_or_default();
    let kind = error.kind();
    // The error does not name the undefined value, so the line is shown.
    let place = error
        .line()
        .and_then(|line| source.lines().nth(line.checked_sub(1)?));
    let shown = place.filter(|_| kind == Kind::UndefinedError);
    let shown = shown.map_or_else(String::new, |text| {
        format!(", in {}", quoted_short(text.trim()))
    });
    Error::template(format!("`{name}`{line}: {kind}{detail}{shown}"))
}

/// Accepts bytes up to a bound and then refuses, so that an endless template does not fill the memory.
pub(super) struct Bounded {
    bytes: Vec<u8>,
    most: usize,
    full: bool,
}

impl Bounded {
    pub(super) fn new(most: usize) -> Self {
        Bounded {
            bytes: Vec::new(),
            most,
            full: false,
        }
    }

    /// Whether bytes were refused.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub(super) fn into_text(self) -> String {
        // Only complete texts were written.
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most - self.bytes.len() {
            self.full = true;
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
