//! `ckpt guide`: the pages for agents, and every example and command on them.

use agent_checkpoint::formats::Formats;

use crate::project::Project;

/// The formats, and the file to which the page's example is first written where its pipeline would write it.
const PAGES: [(&str, Option<&str>); 7] = [
    ("task", None),
    ("builder-state", None),
    ("agent-session", None),
    ("sitebuilder", None),
    ("story-pipeline", Some("checkpoint-SHOP-12.json")),
    ("story-pipeline-state", Some("state.json")),
    ("build-pipeline", Some("PRD-041.json")),
];

/// The code blocks of a page in one language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let open = format!("```{language}\n");
    let after = page.split(open.as_str()).skip(1);
    after
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

fn guide(format: &str) -> Option<&'static str> {
    Formats::default().get(format).unwrap().guide()
}

/// The words of a command, with single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            letter => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_example_of_a_guide_is_valid() {
    for (format, _) in PAGES {
        let examples = blocks(guide(format).unwrap(), "json");
        assert!(!examples.is_empty(), "{format}");
        for example in examples {
            let project = Project::with("example.json", example);
            let run = project.expect(0, &["validate", "example.json", "--format", format]);
            assert!(run.out.contains(": valid ("), "{format}: {run:?}");
        }
    }
}

#[test]
fn every_command_of_a_guide_does_what_the_page_says() {
    for (format, file) in PAGES {
        let page = guide(format).unwrap();
        let project = Project::new();
        if let Some(file) = file {
            project.write(file, blocks(page, "json")[0]);
            // The files in the examples were written before the checkpoint was saved.
            project.write_at("db/schema.sql", "2026-03-02T07:00:00Z");
        }
        for made in ["src/toggle.tsx", "src/shop.ts", "out/post-01.md"] {
            project.write_at(made, "2026-03-02T07:00:00Z");
        }
        let mut count = 0;
        for line in blocks(page, "sh").iter().flat_map(|block| block.lines()) {
            let (command, note) = line.split_once(" # ").unwrap_or((line, ""));
            let code = note
                .strip_prefix("exit ")
                .map_or(0, |rest| rest.split(':').next().unwrap().parse().unwrap());
            let words = words(command);
            assert_eq!(words[0], "ckpt", "{format}: {line}");
            let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            project.expect(code, &arguments);
            count += 1;
        }
        assert!(count >= 3, "{format}");
    }
}

#[test]
fn a_guide_is_printed_by_its_name_and_without_one_the_list() {
    let project = Project::new();
    let list = project.expect(0, &["guide"]);
    for (format, _) in PAGES {
        assert!(
            list.out.lines().any(|line| line.starts_with(format)),
            "{list:?}"
        );
        let run = project.expect(0, &["guide", format]);
        assert_eq!(run.out, guide(format).unwrap());
        for heading in [
            "## When to write",
            "## Example",
            "## How to resume",
            "## When it is stale",
        ] {
            assert!(run.out.contains(heading), "{format}: {heading}");
        }
    }
    let pages = project.expect(0, &["guide", "--json"]).json();
    assert_eq!(pages.as_array().unwrap().len(), PAGES.len());
    assert_eq!(pages[0]["text"], guide("task").unwrap());
    let run = project.expect(2, &["guide", "mine"]);
    assert!(run.error().contains("mine"), "{run:?}");
}
