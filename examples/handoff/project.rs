//! The task that the agents work on: a plan, and what each of its steps writes.

use agent_checkpoint::Key;

use super::Result;

/// Where the project keeps its checkpoints.
pub(super) const CHECKPOINTS: &str = "checkpoints";

/// The description of the task.
pub(super) const DESCRIPTION: &str = "Turn page titles into slugs for URLs.";

/// The name of the task's checkpoint.
pub(super) fn key() -> Result<Key> {
    Ok(Key::new("page-slugs")?)
}

/// One step of the plan.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    pub(super) creates: bool,
    pub(super) decides: Option<(&'static str, &'static str)>,
    pub(super) lines: &'static [&'static str],
}

impl Step {
    /// The first line of a step's part of a file, by which the part is found again.
    pub(super) fn marker(&self) -> String {
        format!("// {}", self.name)
    }

    /// Whether the step is worth a note while it is in progress.
    pub(super) fn is_long(&self) -> bool {
        self.lines.len() > 10
    }
}

/// The step of the plan with this name.
pub(super) fn step(name: &str) -> Result<&'static Step> {
    let step = PLAN.iter().find(|step| step.name == name);
    step.ok_or_else(|| format!("the plan has no step {name:?}").into())
}

pub(super) const PLAN: &[Step] = &[
    Step {
        name: "Create the slug module",
        file: "src/slug.rs",
        creates: true,
        decides: None,
        lines: &[
            "pub fn slug(title: &str) -> String {",
            "    join(&fold(title).to_lowercase())",
            "}",
        ],
    },
    Step {
        name: "Join words with hyphens",
        file: "src/slug.rs",
        creates: false,
        decides: Some((
            "Hyphens between words, not underscores",
            "Search engines split words at hyphens",
        )),
        lines: &[
            "fn join(text: &str) -> String {",
            "    text.split(|c: char| !c.is_alphanumeric())",
            "        .filter(|word| !word.is_empty())",
            "        .collect::<Vec<_>>()",
            "        .join(\"-\")",
            "}",
        ],
    },
    // The longest step: agent-one is killed before it finishes it.
    Step {
        name: "Fold accented letters",
        file: "src/slug.rs",
        creates: false,
        decides: None,
        lines: &[
            "fn fold(text: &str) -> String {",
            "    let mut folded = String::new();",
            "    for letter in text.chars() {",
            "        match letter {",
            "            'á' | 'à' | 'â' | 'ã' => folded.push('a'),",
            "            'é' | 'è' | 'ê' | 'ë' => folded.push('e'),",
            "            'í' | 'ì' | 'î' | 'ï' => folded.push('i'),",
            "            'ó' | 'ò' | 'ô' | 'õ' => folded.push('o'),",
            "            'ú' | 'ù' | 'û' => folded.push('u'),",
            "            'ä' | 'æ' => folded.push_str(\"ae\"),",
            "            'ö' | 'ø' | 'œ' => folded.push_str(\"oe\"),",
            "            'ü' => folded.push_str(\"ue\"),",
            "            'å' => folded.push_str(\"aa\"),",
            "            'ß' => folded.push_str(\"ss\"),",
            "            'ç' => folded.push('c'),",
            "            'ñ' => folded.push('n'),",
            "            'ý' | 'ÿ' => folded.push('y'),",
            "            'þ' => folded.push_str(\"th\"),",
            "            'ð' => folded.push('d'),",
            "            'š' => folded.push('s'),",
            "            'ž' => folded.push('z'),",
            "            other => folded.push(other),",
            "        }",
            "    }",
            "    folded",
            "}",
        ],
    },
    Step {
        name: "Test titles in six languages",
        file: "tests/slug.rs",
        creates: true,
        decides: None,
        lines: &[
            "#[test]",
            "fn titles_become_slugs() {",
            "    assert_eq!(slug(\"Smørrebrød à la carte\"), \"smoerrebroed-a-la-carte\");",
            "}",
        ],
    },
    Step {
        name: "Export the module",
        file: "src/lib.rs",
        creates: true,
        decides: None,
        lines: &["mod slug;", "pub use slug::slug;"],
    },
];
