//! The prompts for the next agent, and the messages about a checkpoint.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::budget::{Budget, estimate};
use super::view::{LeftOut, View};
use super::{Resume, ResumeDecision};
use crate::checkpoint::{Error, ErrorKind, Result};
use crate::formats;
use crate::fsio;
use crate::redaction::Redaction;
use crate::template::{self, Source};

/// The extension of a template file.
const ENDING: &str = ".md";

/// The largest template file, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// The templates of prompts and messages, in the language of Jinja: the built-in ones, or your own in their place.
///
/// | name | for |
/// |---|---|
/// | `resume` | the whole prompt of the agent that resumes |
/// | `block` | a short form of it, for the end of your own prompt |
/// | `header` | the line that an agent says when it resumes |
/// | `take-over` | the message to an agent that takes over from another |
/// | `status-check` | the question to an agent that is late |
/// | `escalation` | the question to a person about an agent that is silent |
/// | `progress` | the line for an orchestrator |
///
/// A name with the format before it, such as `story-pipeline/block`, replaces the plain one for checkpoints of that
/// format; protocols with their own messages have them there ([`names`](Prompts::names) lists all). A plain template of
/// yours replaces those as well.
///
/// # What a template sees
///
/// The fields of [`Resume`]: `format`, `task`, `description`, `plan`, `staleness`, `handoff`, `earlier`, `criteria`,
/// `violations`, `foreign`, `file`, `recording`, `own`. Also `worked_on_by`; `omitted` and `omitted_reasons` (how many
/// are omitted), `omitted_notes` (whether the notes in `foreign` are); `review` (the files that no warning names);
/// `proofs` (the status of each proof of finished work, by its text); `now`, `changed`, `last_update`, `minutes` (since
/// then); and `given` ([`PromptOptions::with_value`]). A name that does not exist is an error.
///
/// # Texts of a checkpoint are data
///
/// Every text that a template shows is redacted and then quoted: it cannot open a heading, list, quote, fence or HTML,
/// further lines begin with a bar, and hidden or control characters are written out. Template code in it is not run. A
/// template that shows a text with the filter `safe` vouches for it; the filter `path` quotes a path that could be read
/// as more than one.
///
/// A template cannot run for ever or fill the memory: its steps and its output are bounded by the size of what it
/// shows.
///
/// Source of the built-in `resume`: the resume prompt template of the builder-state protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompts {
    own: BTreeMap<String, String>,
}

/// Options for rendering a prompt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PromptOptions {
    /// Whether the prompt begins with the template `header`.
    pub(crate) header: bool,
    /// The greatest size: first the oldest finished steps are omitted, then the oldest reasons of decisions, then the
    /// notes in undeclared members, and nothing else.
    pub(crate) budget: Option<Budget>,
    /// What is redacted in texts; [`Redaction::secrets`] by default.
    pub(crate) redaction: Option<Redaction>,
    /// The values that templates see as `given`.
    pub(crate) values: BTreeMap<String, Value>,
}

impl Default for PromptOptions {
    fn default() -> Self {
        PromptOptions {
            header: false,
            budget: None,
            redaction: Some(Redaction::secrets()),
            values: BTreeMap::new(),
        }
    }
}

impl PromptOptions {
    /// The defaults: no header, no budget, secrets redacted.
    #[must_use]
    pub fn new() -> Self {
        PromptOptions::default()
    }

    /// Begins the prompt with the header.
    #[must_use]
    pub fn with_header(mut self) -> Self {
        self.header = true;
        self
    }

    /// Sets the greatest size of the prompt.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets the greatest size of the prompt in tokens, estimated at four bytes each.
    #[must_use]
    pub fn with_budget_tokens(self, tokens: usize) -> Self {
        self.with_budget(Budget::tokens(tokens))
    }

    /// Sets what is redacted in the texts; `None` shows them unchanged.
    #[must_use]
    pub fn with_redaction(mut self, redaction: impl Into<Option<Redaction>>) -> Self {
        self.redaction = redaction.into();
        self
    }

    /// Gives templates a value, `{{ given.NAME }}`. The built-in status checks use `number`, the number of the message.
    #[must_use]
    pub fn with_value(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.values.insert(name.into(), value.into());
        self
    }
}

/// A rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[must_use]
#[non_exhaustive]
pub struct Rendered {
    /// The prompt; ends with a line end.
    pub text: String,
    /// How many finished steps are omitted.
    pub omitted_steps: usize,
    /// How many reasons of decisions are omitted.
    pub omitted_reasons: usize,
    /// Its size in the unit of the budget; without a budget in tokens, estimated at four bytes each.
    pub tokens: usize,
    /// Whether it exceeds the budget although everything that may be omitted is.
    pub over_budget: bool,
}

impl Prompts {
    /// The names of all built-in templates.
    pub fn names() -> impl Iterator<Item = &'static str> {
        built_in().map(|(name, _)| name)
    }

    /// Replaces the template with this name by your own.
    ///
    /// # Errors
    ///
    /// The code `template` with name, line and reason: when there is no such name, and when the text is no valid
    /// template.
    pub fn with(mut self, name: &str, source: impl Into<String>) -> Result<Prompts> {
        require_known(name)?;
        let source = source.into();
        template::check(name, &source)?;
        self.own.insert(name.to_owned(), source);
        Ok(self)
    }

    /// Reads the templates of a folder: `NAME.md`, and `FORMAT/NAME.md` for a single format. The built-in ones are used
    /// for names that it lacks.
    ///
    /// # Errors
    ///
    /// The code `template` as for [`with`](Prompts::with), also for a file whose name is that of no template;
    /// [`ErrorKind::NotFound`], the code `not-a-folder`, and the errors of reading a file. Each has the path.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Prompts> {
        let folder = folder.as_ref();
        if !folder.is_dir() {
            return Err(Error::not_a_folder().with_path(folder));
        }
        let mut prompts = Prompts::default();
        read_folder(folder, "", &mut prompts)?;
        Ok(prompts)
    }

    /// The text of the template with this name for checkpoints of this format, as a start for your own.
    ///
    /// # Errors
    ///
    /// The code `template` when there is no such name.
    pub fn source(&self, name: &str, format: &str) -> Result<&str> {
        self.find(name, format).map(|(_, source)| source.text())
    }

    /// The name and text of the template to use.
    fn find(&self, name: &str, format: &str) -> Result<(String, Source<'_>)> {
        let special = format!("{format}/{name}");
        let own = |name: &str| Some(Source::Own(self.own.get(name)?));
        let built_in_source = |name: &str| built_in_source(name).map(Source::BuiltIn);
        let found = own(&special)
            .or_else(|| own(name))
            .or_else(|| built_in_source(&special))
            .or_else(|| built_in_source(name));
        if let Some(source) = found {
            return Ok((name.to_owned(), source));
        }
        require_known(name)?;
        // The name is known, but belongs to another format.
        Err(unknown(name))
    }

    /// Renders the template of this name.
    ///
    /// # Errors
    ///
    /// The code `template` with name, line and reason: when there is no template of this name, when the template uses a
    /// name that does not exist, and when it renders without end.
    pub fn render(&self, name: &str, resume: &Resume, options: &PromptOptions) -> Result<Rendered> {
        let (name, source) = self.find(name, resume.format)?;
        if let Some((format, _)) = name.split_once('/')
            && format != resume.format
        {
            return Err(Error::template(format!(
                "`{name}`: is for checkpoints of {format}, and this is one of {}",
                resume.format
            )));
        }
        let header = if options.header {
            self.header(resume, options)?
        } else {
            String::new()
        };
        let render = |left_out: LeftOut| -> Result<Rendered> {
            let view = View::new(resume, options, left_out);
            let text = template::render(&name, source, &view, options.redaction.as_ref())?;
            let text = format!("{header}{text}");
            let budget = options.budget.as_ref();
            Ok(Rendered {
                omitted_steps: resume.done_elsewhere() + left_out.steps,
                omitted_reasons: left_out.reasons,
                tokens: budget.map_or_else(|| estimate(&text), |budget| budget.size(&text)),
                over_budget: budget.is_some_and(|budget| !budget.fits(&text)),
                text,
            })
        };
        let whole = render(LeftOut::default())?;
        if !whole.over_budget {
            return Ok(whole);
        }
        // The approximate size of each, to decide where the search begins.
        let steps: Vec<usize> = resume
            .handoff
            .done
            .iter()
            .map(|step| step.text.len() + 3)
            .collect();
        let reasons = resume.handoff.decisions.iter();
        let reasons: Vec<usize> = reasons
            .filter_map(|decision| Some(decision.rationale.as_ref()?.len() + 5))
            .collect();
        let mut left_out = LeftOut::default();
        let budget = options.budget.as_ref().map_or(0, Budget::most);
        let mut best = fewest(&whole, budget, &steps, |steps| {
            render(LeftOut { steps, ..left_out })
        })?;
        if best.as_ref().is_none_or(|best| best.over_budget) {
            left_out.steps = steps.len();
            let before = best.as_ref().unwrap_or(&whole);
            let fewer = fewest(before, budget, &reasons, |reasons| {
                render(LeftOut {
                    reasons,
                    ..left_out
                })
            })?;
            best = fewer.or(best);
        }
        let has_notes = resume.foreign.iter().any(|member| member.note.is_some());
        if has_notes && best.as_ref().is_none_or(|best| best.over_budget) {
            left_out.reasons = reasons.len();
            left_out.notes = true;
            best = Some(render(left_out)?);
        }
        // A few short steps can be shorter than the line that counts the omitted ones.
        Ok(match best {
            Some(best) if best.tokens < whole.tokens => best,
            _ => whole,
        })
    }

    fn header(&self, resume: &Resume, options: &PromptOptions) -> Result<String> {
        let (name, source) = self.find("header", resume.format)?;
        let view = View::new(resume, options, LeftOut::default());
        let text = template::render(&name, source, &view, options.redaction.as_ref())?;
        Ok(format!("{}\n\n", text.trim_end()))
    }
}

/// Finds the prompt with the fewest omitted items that fits, else the one with all of them omitted; `None` if there is
/// nothing to omit. The first omission adds a line that counts them; each further one only makes the prompt shorter.
///
/// Rendering a prompt with many steps takes time, so the search begins where the sizes predict that it fits, and
/// continues near it.
fn fewest(
    before: &Rendered,
    budget: usize,
    sizes: &[usize],
    render: impl Fn(usize) -> Result<Rendered>,
) -> Result<Option<Rendered>> {
    let (mut too_few, mut most) = (0, sizes.len());
    if most == 0 {
        return Ok(None);
    }
    let mut best = render(most)?;
    if best.over_budget {
        return Ok(Some(best));
    }
    let part = before.tokens.saturating_sub(budget) as f64
        / before.tokens.saturating_sub(best.tokens).max(1) as f64;
    let wanted = part * sizes.iter().sum::<usize>() as f64;
    let mut sum = 0.0;
    let mut guess = sizes
        .iter()
        .take_while(|size| {
            let is_before = sum < wanted;
            sum += **size as f64;
            is_before
        })
        .count();
    let mut step = 1;
    let mut last = None;
    let mut is_between = false;
    while most - too_few > 1 {
        if is_between {
            guess = too_few + (most - too_few) / 2;
        }
        let tried = guess.clamp(too_few + 1, most - 1);
        let rendered = render(tried)?;
        let fits = !rendered.over_budget;
        is_between |= last.is_some_and(|last| last != fits);
        last = Some(fits);
        if fits {
            most = tried;
            best = rendered;
            guess = tried.saturating_sub(step);
        } else {
            too_few = tried;
            guess = tried.saturating_add(step);
        }
        step *= 2;
    }
    Ok(Some(best))
}

impl Resume {
    /// Whether the decision lets another agent resume, so that a prompt is useful.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.plan.decision < ResumeDecision::Wait
    }
}

/// The templates for every format, then those of single formats. `FORMAT/NAME` replaces `NAME` for checkpoints of that
/// format.
fn built_in() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_formats = formats::TEMPLATES.iter().copied().flatten();
    template::BUILT_IN.iter().chain(of_formats).copied()
}

fn built_in_source(name: &str) -> Option<&'static str> {
    let found = built_in().find(|(known, _)| *known == name);
    found.map(|(_, source)| source)
}

fn require_known(name: &str) -> Result<()> {
    let plain = name.rsplit('/').next().unwrap_or(name);
    let is_known = Prompts::names().any(|known| known == name)
        || (Prompts::names().any(|known| known == plain)
            && name
                .split_once('/')
                .is_some_and(|(format, rest)| !format.is_empty() && rest == plain));
    if is_known { Ok(()) } else { Err(unknown(name)) }
}

fn unknown(name: &str) -> Error {
    let names: Vec<_> = Prompts::names().collect();
    Error::template(format!(
        "`{name}`: there is no template of this name; the names are {}",
        names.join(", ")
    ))
}

/// Reads the templates of a folder, and of its sub-folders, which are named after formats.
fn read_folder(folder: &Path, format: &str, prompts: &mut Prompts) -> Result<()> {
    for name in fsio::names(folder)? {
        let path = folder.join(&name);
        let Some(file) = name.to_str() else {
            continue;
        };
        // Hidden files and backups of editors are no templates.
        if file.starts_with('.') || file.ends_with('~') {
            continue;
        }
        if path.is_dir() && format.is_empty() {
            read_folder(&path, &format!("{file}/"), prompts)?;
        } else if let Some(name) = file.strip_suffix(ENDING) {
            let source = read_template(&path)?;
            *prompts = std::mem::take(prompts)
                .with(&format!("{format}{name}"), source)
                .map_err(|error| error.with_path(&path))?;
        }
    }
    Ok(())
}

fn read_template(path: &Path) -> Result<String> {
    let contents = fsio::read_limited(path, LARGEST)?;
    let contents = contents.ok_or_else(|| Error::new(ErrorKind::NotFound).with_path(path))?;
    String::from_utf8(contents.bytes)
        .map_err(|_| Error::template("is not UTF-8 text".to_owned()).with_path(path))
}
