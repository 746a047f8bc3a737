//! The prompt for the next agent.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use super::{Resume, ResumePlan};
use crate::checkpoint::{DoneItem, Error, ErrorKind, Handoff, Result};
use crate::json::Violation;
use crate::staleness::TrackedFile;

/// Source: the resume prompt template of the builder-state protocol.
const BUILT_IN: &str = include_str!("prompt.md");

/// How many steps a template may take: some hundred for each of 100,000 list items. One that loops longer
/// is a fault, and must not hold its caller for ever.
const FUEL: u64 = 20_000_000;

/// How many bytes of prompt are counted as one token.
const BYTES_PER_TOKEN: usize = 4;

/// A template for resume prompts, in the language of Jinja.
///
/// The template sees the fields of [`Resume`] (`task`, `description`, `plan`, `staleness`, `handoff`,
/// `earlier`, `violations`), and `worked_on_by`, `header` and `omitted`. The filter `item` keeps a
/// text of several lines inside its list item; `text` only takes control characters out. Texts from the checkpoint are values: what looks like
/// template code in them is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    source: String,
}

impl Default for Prompt {
    fn default() -> Self {
        Prompt {
            source: BUILT_IN.to_owned(),
        }
    }
}

/// How a prompt is rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptOptions {
    /// Begin with the line "Resuming from checkpoint (created by …)".
    pub header: bool,
    /// At most so many tokens, estimated at four bytes each: the oldest finished steps are left out
    /// first, nothing else is.
    pub budget_tokens: Option<usize>,
}

impl PromptOptions {
    /// Without header, without budget.
    #[must_use]
    pub fn new() -> Self {
        PromptOptions::default()
    }

    /// Begins with the header line.
    #[must_use]
    pub fn with_header(mut self) -> Self {
        self.header = true;
        self
    }

    /// Sets the budget, in tokens.
    #[must_use]
    pub fn with_budget_tokens(mut self, tokens: usize) -> Self {
        self.budget_tokens = Some(tokens);
        self
    }
}

/// A prompt that was rendered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct Rendered {
    /// The prompt; ends with a line end.
    pub text: String,
    /// How many finished steps it does not list.
    pub omitted_steps: usize,
    /// Its size in tokens, estimated at four bytes each.
    pub tokens: usize,
    /// Whether it is over the budget with nothing left that may be left out.
    pub over_budget: bool,
}

impl Prompt {
    /// A template of your own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Template`] with line and reason when it is no template.
    pub fn new(source: impl Into<String>) -> Result<Prompt> {
        let prompt = Prompt {
            source: source.into(),
        };
        prompt.environment().map(|_| ())?;
        Ok(prompt)
    }

    /// The text of the template, for a start of your own.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    fn environment(&self) -> Result<Environment<'_>> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.add_filter("text", |text: String| printable(&text));
        environment.add_filter("item", |text: String| {
            printable(&text).replace('\n', "\n  ")
        });
        // The name decides about escaping: a Markdown file gets none.
        environment
            .add_template("prompt.md", &self.source)
            .map_err(template_error)?;
        Ok(environment)
    }

    /// Renders the prompt.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Template`] with line and reason, such as a name that the template uses and that
    /// does not exist.
    pub fn render(&self, resume: &Resume, options: &PromptOptions) -> Result<Rendered> {
        let environment = self.environment()?;
        let template = environment
            .get_template("prompt.md")
            .map_err(template_error)?;
        let render = |left_out: usize| -> Result<Rendered> {
            let mut handoff = resume.handoff.clone();
            handoff.done.drain(..left_out);
            let omitted = resume.earlier.len() + left_out;
            let mut text = template
                .render(Serde(View {
                    task: &resume.task,
                    description: resume.description.as_deref(),
                    plan: &resume.plan,
                    staleness: FilesView {
                        verdict: resume.staleness.as_str(),
                        files: resume.staleness.files(),
                    },
                    handoff: &handoff,
                    earlier: &resume.earlier,
                    violations: &resume.violations,
                    worked_on_by: resume.worked_on_by(),
                    header: options.header,
                    omitted,
                }))
                .map_err(template_error)?;
            // The template's own last line end is not rendered.
            if self.source.ends_with('\n') && !text.ends_with('\n') {
                text.push('\n');
            }
            let tokens = text.len().div_ceil(BYTES_PER_TOKEN);
            Ok(Rendered {
                text,
                omitted_steps: omitted,
                tokens,
                over_budget: options.budget_tokens.is_some_and(|budget| tokens > budget),
            })
        };
        let whole = render(0)?;
        if !whole.over_budget {
            return Ok(whole);
        }
        // The fewest steps left out that fit. The first one adds the line that says so; from then on a
        // prompt only gets shorter with each.
        let mut fewest = 1;
        let mut most = resume.handoff.done.len();
        if most == 0 {
            return Ok(whole);
        }
        let mut best = render(most)?;
        while fewest < most {
            let middle = fewest + (most - fewest) / 2;
            let rendered = render(middle)?;
            if rendered.over_budget {
                fewest = middle + 1;
            } else {
                most = middle;
                best = rendered;
            }
        }
        // A few short steps can be shorter than the line that says that they are left out.
        Ok(if whole.tokens <= best.tokens {
            whole
        } else {
            best
        })
    }
}

/// A text without what could work on a terminal or hide from a reader: line ends and tabs stay, other
/// control characters are shown as a mark.
fn printable(text: &str) -> String {
    let text = text.trim_end().replace("\r\n", "\n");
    text.replace(
        |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t'),
        "\u{fffd}",
    )
}

/// What a template sees.
#[derive(Serialize)]
struct View<'r> {
    task: &'r str,
    description: Option<&'r str>,
    plan: &'r ResumePlan,
    staleness: FilesView<'r>,
    handoff: &'r Handoff,
    earlier: &'r [DoneItem],
    violations: &'r [Violation],
    worked_on_by: String,
    header: bool,
    omitted: usize,
}

#[derive(Serialize)]
struct FilesView<'r> {
    verdict: &'r str,
    files: &'r [TrackedFile],
}

fn template_error(error: minijinja::Error) -> Error {
    let line = error
        .line()
        .map(|line| format!("line {line}: "))
        .unwrap_or_default();
    let detail = error
        .detail()
        .map(|detail| format!(": {detail}"))
        .unwrap_or_default();
    let kind = error.kind();
    Error::new(ErrorKind::Template {
        detail: format!("{line}{kind}{detail}"),
    })
}
