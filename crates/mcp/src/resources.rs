//! The resources for a client: the pages of the formats, the schema of an operation, and the prompt of each task.

use agent_checkpoint::formats::Format;
use percent_encoding::percent_decode_str;
use rmcp::model::{Prompt, PromptArgument, Resource, ResourceTemplate};

use crate::bounds;
use crate::calls::Calls;
use crate::catalog;
use crate::failed::Failed;

const GUIDE: &str = "ckpt://guide/";
const PROMPT: &str = "ckpt://prompt/";
const SCHEMA: &str = "ckpt://schema/operation";

/// The name of the prompt to continue a task.
pub(crate) const RESUME: &str = "resume";

/// The content of a resource.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) mime_type: &'static str,
}

/// The resources that need no key.
pub(crate) fn list(calls: &Calls) -> Vec<Resource> {
    let of_all = calls.served.formats().iter();
    let formats: Vec<&Format> = match calls.served.format() {
        Some(format) => vec![format],
        None => of_all.collect(),
    };
    let guides = formats
        .into_iter()
        .filter(|format| format.guide().is_some());
    let guides = guides.map(|format| {
        let name = format.name();
        Resource::new(format!("{GUIDE}{name}"), format!("guide-{name}"))
            .with_title(format!("Recording a task as {name}"))
            .with_description("When to record what, with examples")
            .with_mime_type("text/markdown")
    });
    let operation = Resource::new(SCHEMA, "operation")
        .with_title("What `report` takes")
        .with_description("The JSON Schema of an operation")
        .with_mime_type("application/schema+json");
    guides.chain([operation]).collect()
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let prompt = ResourceTemplate::new(format!("{PROMPT}{{key}}"), "prompt")
        .with_title("How to go on with a task")
        .with_description("The prompt for the agent that goes on; the key is percent-encoded")
        .with_mime_type("text/markdown");
    let guide = ResourceTemplate::new(format!("{GUIDE}{{format}}"), "guide")
        .with_title("Recording a task in a format")
        .with_description("When to record what, with examples")
        .with_mime_type("text/markdown");
    vec![prompt, guide]
}

pub(crate) fn prompts() -> Vec<Prompt> {
    let key = PromptArgument::new("key")
        .with_description("The id of the task")
        .with_required(true);
    let about = "Go on with a task that another agent, or you in another session, left";
    vec![Prompt::new(RESUME, Some(about), Some(vec![key])).with_title("Go on with a task")]
}

/// Reads a resource; `None` if the address is unknown.
pub(crate) fn read(calls: &Calls, uri: &str, client: &str) -> Result<Option<Page>, Failed> {
    if uri == SCHEMA {
        let schema = catalog::operations(calls.served.format());
        return Ok(Some(Page {
            text: format!("{schema:#}"),
            mime_type: "application/schema+json",
        }));
    }
    if let Some(name) = uri.strip_prefix(GUIDE) {
        let format = calls
            .served
            .formats()
            .iter()
            .find(|format| format.name() == name);
        let guide = format.and_then(Format::guide);
        return Ok(guide.map(|text| Page {
            text: text.to_owned(),
            mime_type: "text/markdown",
        }));
    }
    let Some(key) = uri.strip_prefix(PROMPT) else {
        return Ok(None);
    };
    let key = percent_decode_str(key).decode_utf8();
    let key =
        key.map_err(|_| Failed::new("invalid-key", "the key in the address is no UTF-8 text"))?;
    Ok(Some(Page {
        text: prompt(calls, &key, client)?,
        mime_type: "text/markdown",
    }))
}

/// The prompt of a task, with what must be heeded first.
pub(crate) fn prompt(calls: &Calls, key: &str, client: &str) -> Result<String, Failed> {
    let judged = calls.look_at(key, None, client)?;
    Ok(bounds::text(&judged.text(), bounds::MOST_OF_ANSWER))
}
