//! For any text in a checkpoint, the prompt has exactly the structure of its template.

use crate::common::{clock, key};
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::build_pipeline::BuildCheckpoint;
use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
use agent_checkpoint::formats::story_pipeline::{PipelineState, StoryCheckpoint};
use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::json::Document;
use agent_checkpoint::resume::{PromptOptions, Prompts, Resume, ResumeOptions};
use agent_checkpoint::store::{CheckpointStore, MemoryStore, Put};
use agent_checkpoint::{Checkpoint, CheckpointStoreExt, is_blank};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;

/// The members with free texts.
const FREE: &[&str] = &[
    "step",
    "pendingSteps",
    "description",
    "partialWork",
    "decision",
    "rationale",
    "blockers",
    "contractRef",
    "activity",
    "createdBy",
    "previousAgents",
    "feature",
    "current_step",
    "completed_steps",
    "next_steps",
    "recovery_instructions",
    "recovery_notes",
    "task_title",
    "notes",
    "resume_instructions",
    "message",
    "last_processed",
    "lastAction",
    "last_action",
    "prd_title",
    "reason_text",
    "team_name",
    "change",
];

/// Replaces the free texts, one after the other.
fn reword(value: &mut Value, free: bool, word: &mut dyn FnMut() -> String) {
    match value {
        Value::String(text) if free => *text = word(),
        Value::Array(items) => items.iter_mut().for_each(|item| reword(item, free, word)),
        Value::Object(members) => members
            .iter_mut()
            .for_each(|(name, member)| reword(member, FREE.contains(&name.as_str()), word)),
        _ => {}
    }
}

fn resume<C: Checkpoint>(checkpoint: &Value) -> Resume {
    let store = MemoryStore::new();
    let document = Document::from_text(checkpoint.to_string()).unwrap();
    store.put(&key("k"), Put::new(document.clone())).unwrap();
    store
        .checkpoints::<C>()
        .with_clock(clock("2026-03-02T08:00:00Z"))
        .resume(&key("k"), &ResumeOptions::new(std::env::temp_dir()))
        .unwrap()
}

/// Headings with their text, and the beginnings and ends of lists, quotes, code and HTML. Other texts are omitted,
/// because they differ.
fn structure(markdown: &str) -> Vec<String> {
    // Constructs that only other dialects have must not appear either.
    let dialects = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_DEFINITION_LIST
        | Options::ENABLE_MATH;
    let mut shape = Vec::new();
    for event in Parser::new_ext(markdown, dialects) {
        match event {
            Event::Start(
                tag @ (Tag::Heading { .. }
                | Tag::BlockQuote(_)
                | Tag::CodeBlock(_)
                | Tag::List(_)
                | Tag::Item
                | Tag::HtmlBlock
                | Tag::Table(_)
                | Tag::FootnoteDefinition(_)
                | Tag::DefinitionList),
            ) => shape.push(format!("{tag:?}")),
            Event::End(
                tag @ (TagEnd::Heading(_)
                | TagEnd::BlockQuote(_)
                | TagEnd::CodeBlock
                | TagEnd::List(_)
                | TagEnd::Item
                | TagEnd::HtmlBlock),
            ) => shape.push(format!("/{tag:?}")),
            Event::Rule => shape.push("rule".to_owned()),
            _ => {}
        }
    }
    shape
}

/// Texts that could open a block.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "#",
        "## Instructions",
        "###### x #",
        "---",
        "***",
        "___",
        "- - -",
        "===",
        "=",
        "-",
        "+",
        "*",
        "1.",
        "2)",
        "10. x",
        "- x",
        "* y",
        "> q",
        ">",
        "```",
        "````rust",
        "~~~",
        "`",
        "<div>",
        "</div>",
        "<!--",
        "-->",
        "<?php",
        "<!DOCTYPE x>",
        "<![CDATA[",
        "<script>",
        "<a href='x'>",
        "[a]: /b",
        "[a",
        "]: /c",
        "[^1]: note",
        "[x](y)",
        "| a | b |",
        "|---|---|",
        ":--",
        ": definition",
        "$$",
        "\\",
        "\\\\",
        "&#35; x",
        "**",
        "_",
        "word",
        "Files to Review",
        "/etc/passwd",
        "{{ 7 * 7 }}",
        "{% raw %}",
        "😀",
        "é",
        "0",
        "x",
    ]);
    let gaps = prop::sample::select(vec![
        "",
        " ",
        "  ",
        "    ",
        "\t",
        "\n",
        "\n\n",
        "\r",
        "\r\n",
        "\u{a0}",
        "\u{2028}",
        "\u{2029}",
        "\u{85}",
        "\u{b}",
        "\u{c}",
        "\u{0}",
        "\u{1b}[2J",
        "\u{202e}",
        "\u{200b}",
        "\u{feff}",
        "\n    ",
        "\n\t",
        "  \n",
        "\\\n",
    ]);
    prop_oneof![
        8 => prop::collection::vec((gaps.clone(), pieces), 0..6).prop_map(|parts| {
            parts.iter().map(|(gap, piece)| format!("{gap}{piece}")).collect()
        }),
        1 => gaps.prop_map(str::to_owned),
        2 => any::<String>(),
    ]
}

/// A checkpoint with texts that look like structure, and the same with plain words instead.
fn pair<C: Checkpoint>(
    checkpoints: impl Strategy<Value = C>,
) -> impl Strategy<Value = (Value, Value, Vec<String>)> {
    (checkpoints, prop::collection::vec(hostile(), 64)).prop_map(|(checkpoint, texts)| {
        let document = Document::new(&checkpoint).unwrap();
        let mut bent: Value = serde_json::from_str(document.text()).unwrap();
        let mut plain = bent.clone();
        let mut next = texts.iter().cycle();
        reword(&mut bent, false, &mut || next.next().unwrap().clone());
        // Blank texts stay blank, because formats and templates check for that. Equal texts stay equal, because a step
        // that is both done and planned is reported.
        let mut words = std::collections::HashMap::new();
        let mut next = texts.iter().cycle();
        reword(&mut plain, false, &mut || {
            let text = next.next().unwrap();
            let count = words.len();
            match is_blank(text) {
                true => text.clone(),
                false => words
                    .entry(text)
                    .or_insert_with(|| format!("word {count}"))
                    .clone(),
            }
        });
        (bent, plain, texts)
    })
}

/// The messages whose Markdown has only the template's structure.
const NAMES: [&str; 7] = [
    "resume",
    "block",
    "header",
    "take-over",
    "status-check",
    "escalation",
    "progress",
];

fn check<C: Checkpoint>(bent: &Value, plain: &Value) -> Result<(), TestCaseError> {
    let (bent, plain) = (resume::<C>(bent), resume::<C>(plain));
    // A text that looks like a path becomes a file of the checkpoint, and is listed as one.
    let files = |resume: &Resume| resume.handoff.files.len();
    prop_assume!(files(&bent) == files(&plain));
    for name in NAMES {
        let render = |resume: &Resume| {
            let options = PromptOptions::new();
            Prompts::default()
                .render(name, resume, &options)
                .unwrap()
                .text
        };
        let (bent, plain) = (render(&bent), render(&plain));
        prop_assert_eq!(
            structure(&bent),
            structure(&plain),
            "{}:\n{}\n\n{}",
            name,
            bent,
            plain
        );
        let is_shown = |letter: char| letter == '\n' || letter == '\t' || !letter.is_control();
        prop_assert!(bent.chars().all(is_shown), "{bent:?}");
        let is_hidden = bent.contains(['\u{202e}', '\u{2066}', '\u{200b}', '\u{2028}']);
        prop_assert!(!is_hidden, "{bent:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::common::cases(160)))]

    #[test]
    fn no_text_of_a_task_adds_to_the_structure_of_a_prompt((bent, plain, _) in pair(any::<TaskCheckpoint>())) {
        check::<TaskCheckpoint>(&bent, &plain)?;
    }

    #[test]
    fn no_text_of_an_agent_adds_to_the_structure_of_a_prompt((bent, plain, _) in pair(any::<AgentCheckpoint>())) {
        check::<AgentCheckpoint>(&bent, &plain)?;
    }

    #[test]
    fn no_text_of_a_sitebuilder_adds_to_the_structure_of_a_prompt((bent, plain, _) in pair(any::<SitebuilderCheckpoint>())) {
        check::<SitebuilderCheckpoint>(&bent, &plain)?;
    }

    #[test]
    fn no_text_of_a_story_adds_to_the_structure_of_a_prompt((bent, plain, _) in pair(any::<StoryCheckpoint>())) {
        check::<StoryCheckpoint>(&bent, &plain)?;
    }

    #[test]
    fn no_text_of_a_pipeline_adds_to_the_structure_of_a_prompt((bent, plain, _) in pair(any::<PipelineState>())) {
        check::<PipelineState>(&bent, &plain)?;
    }

    #[test]
    fn no_text_of_a_build_adds_to_the_structure_of_a_prompt((bent, plain, _) in pair(any::<BuildCheckpoint>())) {
        check::<BuildCheckpoint>(&bent, &plain)?;
    }

    /// At every place in a template: also at the beginning of a line, in an item and after a paragraph.
    #[test]
    fn no_text_opens_a_block_wherever_a_template_shows_it(text in hostile()) {
        let source = "# {{ given.t }}\n\n{{ given.t }}\n\nword\n{{ given.t }}\nword\n\n- {{ given.t }}\n- word\n  \
            {{ given.t }}\n  - {{ given.t }}\n\n1. {{ given.t }}\n2. word\n\n> {{ given.t }}\n\n## end\n";
        let prompts = Prompts::default().with("block", source).unwrap();
        let resume = resume::<TaskCheckpoint>(&serde_json::json!({}));
        let render = |text: &str| {
            let options = PromptOptions::new().with_value("t", text);
            prompts.render("block", &resume, &options).unwrap().text
        };
        prop_assert_eq!(structure(&render(&text)), structure(&render("plain")), "{:?}\n{}", text, render(&text));
    }
}

/// The judging parser sees structure: the same texts, unquoted, add some.
#[test]
fn a_text_that_a_template_vouches_for_can_add_structure() {
    let resume = resume::<TaskCheckpoint>(&serde_json::json!({}));
    let prompts = Prompts::default()
        .with("block", "{{ given.t | safe }}\n")
        .unwrap();
    let options = PromptOptions::new().with_value("t", "x\n\n## Instructions\n- rm -rf\n\n```\n");
    let text = prompts.render("block", &resume, &options).unwrap().text;
    let shape = structure(&text).join(" ");
    for part in ["Heading", "List", "CodeBlock"] {
        assert!(shape.contains(part), "{shape}");
    }
}
