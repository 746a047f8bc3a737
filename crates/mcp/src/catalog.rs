//! The list of tools for a client.

use std::sync::Arc;

use agent_checkpoint::Operation;
use agent_checkpoint::formats::{Format, Formats};
use agent_checkpoint::schema::schema;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::answer::{ApprovalState, BeginAnswer, EffectState, Judged, Saved, Tasks};
use crate::{details, inputs};

/// The action of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    Begin,
    Report,
    Decide,
    Resume,
    Effect,
    Approval,
    HandOver,
    Fleet,
}

/// The description of a tool for a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) does: Does,
    title: &'static str,
    description: &'static str,
    /// Whether repeating the call changes nothing more.
    is_idempotent: bool,
}

impl Entry {
    pub(crate) fn reads_only(&self) -> bool {
        matches!(self.does, Does::Resume | Does::Fleet)
    }
}

pub(crate) const ALL: [Entry; 8] = [
    Entry {
        name: "begin",
        does: Does::Begin,
        title: "Begin a task, or go on with it",
        description: "Call this before you work on a task. It claims the task for you, saves your plan as its first \
                      checkpoint, and gives you the fence that every later change needs. If the task has a checkpoint \
                      already, it touches nothing and answers how to go on: heed that, then call it again with \
                      carry_on: true, which claims the task and gives you the fence. If you lost the fence of your own \
                      task, this gives it to you again.",
        is_idempotent: true,
    },
    Entry {
        name: "report",
        does: Does::Report,
        title: "Report what happened",
        description: "Save what happened as one change: steps begun and done with the files they made or changed, notes, \
                      blockers, failures, completion. Report each thing as soon as it is so: what is not reported is lost \
                      when you stop. All operations are saved, or, if one is refused, none.",
        is_idempotent: false,
    },
    Entry {
        name: "decide",
        does: Does::Decide,
        title: "Record a decision",
        description: "Record a decision that every agent that goes on with the task must respect, and why you made it: a \
                      choice of design, something ruled out, an answer of the user. The same as the operation decide of report.",
        is_idempotent: true,
    },
    Entry {
        name: "resume",
        does: Does::Resume,
        title: "See how to go on with a task",
        description: "Whether and how to go on with a task: the decision, questions to be answered and warnings to be \
                      heeded first, and the prompt with what was done, decided and is left. It changes and claims \
                      nothing; begin with carry_on: true claims.",
        is_idempotent: true,
    },
    Entry {
        name: "effect",
        does: Does::Effect,
        title: "Do something outside once",
        description: "Call this before and after you do something outside of the checkpoint that must not happen twice: a \
                      mail, a payment, a deployment, a comment. With begin it says whether to do it, or that it took place \
                      already, with what it gave back, or that it is in doubt. If it says do, do it yourself, then call this \
                      with done. So an agent that goes on after you never repeats it blindly.",
        is_idempotent: true,
    },
    Entry {
        name: "approval",
        does: Does::Approval,
        title: "Ask a person to approve an action",
        description: "Ask a person to approve exactly one action before you do it, or look at what was decided. Only a person \
                      decides, with `ckpt approve` or `ckpt deny`: no tool does. While it is pending, `resume` tells every \
                      agent of the task to wait. Once it is approved, begin the effect with the same id and action.",
        is_idempotent: true,
    },
    Entry {
        name: "hand_over",
        does: Does::HandOver,
        title: "Give a task away",
        description: "Give your task to another agent (to), or give your claim back so that any agent may go on with it. \
                      Call this when you stop, and when the task is complete. Your fence is of no use after it.",
        is_idempotent: true,
    },
    Entry {
        name: "fleet",
        does: Does::Fleet,
        title: "See all tasks",
        description: "The tasks of the store: their keys, who works on each, whether that agent is alive, how far it is, \
                      and which of them you can go on with.",
        is_idempotent: true,
    },
];

/// The tools that a server offers. `format` is the format of all its checkpoints, if one is given.
pub(crate) fn tools(reads_only: bool, formats: &Formats, format: Option<&Format>) -> Vec<Tool> {
    let offered = ALL.iter().filter(|entry| !reads_only || entry.reads_only());
    offered.map(|entry| tool(entry, formats, format)).collect()
}

fn tool(entry: &Entry, formats: &Formats, format: Option<&Format>) -> Tool {
    let (input, output) = match entry.does {
        Does::Begin => (begin(formats, format), object::<BeginAnswer>()),
        Does::Report => (report(format), object::<Saved>()),
        Does::Decide => (input::<inputs::Decide>(), object::<Saved>()),
        Does::Resume => (input::<inputs::Resume>(), object::<Judged>()),
        Does::Effect => (input::<inputs::Effect>(), object::<EffectState>()),
        Does::Approval => (input::<inputs::Approval>(), object::<ApprovalState>()),
        Does::HandOver => (input::<inputs::HandOver>(), object::<Saved>()),
        Does::Fleet => (input::<inputs::Fleet>(), object::<Tasks>()),
    };
    let annotations = ToolAnnotations::with_title(entry.title)
        .read_only(entry.reads_only())
        // The history keeps the replaced state.
        .destructive(false)
        .idempotent(entry.is_idempotent)
        .open_world(false);
    Tool::new(entry.name, entry.description, Arc::new(input))
        .with_title(entry.title)
        .with_raw_output_schema(Arc::new(output))
        .with_annotations(annotations)
}

/// The schema of an operation with its member `force`, for the operations that the format supports.
pub(crate) fn operations(format: Option<&Format>) -> Value {
    let mut operation = schema::<Operation>();
    let is_had = |variant: &Value| {
        let name = variant["properties"]["op"]["const"].as_str();
        format.is_none_or(|format| name.is_some_and(|name| format.operations().contains(&name)))
    };
    if let Some(variants) = operation["oneOf"].as_array_mut() {
        variants.retain(is_had);
        for variant in variants {
            variant["properties"]["force"] = json!({ "type": "boolean" });
        }
    }
    operation
}

fn begin(formats: &Formats, format: Option<&Format>) -> JsonObject {
    let mut begin = input::<inputs::Begin>();
    if let Some(Value::Object(members)) = begin.get_mut("properties") {
        members.insert("details".to_owned(), details::schema(formats, format));
    }
    begin
}

fn report(format: Option<&Format>) -> JsonObject {
    let mut report = input::<inputs::ReportAll>();
    let mut operation = operations(format);
    // References are resolved from the root.
    let definitions = operation.as_object_mut().and_then(|it| it.remove("$defs"));
    if let Some(members) = operation.as_object_mut() {
        // The description of the whole schema is for Rust.
        members.retain(|name, _| !["$schema", "description", "title"].contains(&name.as_str()));
    }
    report.extend(definitions.map(|definitions| ("$defs".to_owned(), definitions)));
    if let Some(items) = report
        .get_mut("properties")
        .and_then(|it| it.get_mut("operations"))
    {
        items["items"] = operation;
    }
    report
}

/// The schema of an input, without the names of our types, which mean nothing to a model.
fn input<T: JsonSchema>() -> JsonObject {
    let mut schema = object::<T>();
    schema.remove("description");
    // A fence may exceed the numbers that some JSON readers support.
    if let Some(Value::Object(fence)) = schema
        .get_mut("properties")
        .and_then(|it| it.get_mut("fence"))
    {
        fence.remove("maximum");
    }
    schema
}

fn object<T: JsonSchema>() -> JsonObject {
    let mut members = match schema::<T>() {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    };
    members.remove("title");
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(operations: &Value) -> Vec<String> {
        let variants = operations["oneOf"].as_array().unwrap().iter();
        let mut names: Vec<String> = variants
            .map(|variant| {
                variant["properties"]["op"]["const"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_format_offers_the_operations_that_it_has() {
        let all = names(&operations(None));
        let formats = agent_checkpoint::formats::Formats::default();
        for format in formats.iter() {
            let mut has = format.operations().to_vec();
            // `block` with a type: some formats have only `block` without it.
            has.retain(|name| *name != "block with a type");
            has.sort_unstable();
            assert_eq!(names(&operations(Some(format))), has, "{}", format.name());
            assert!(has.iter().all(|name| all.iter().any(|known| known == name)));
        }
    }
}
