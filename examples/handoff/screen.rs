//! Colour, on a terminal only.

use std::io::IsTerminal;

pub(super) fn bold(text: &str) -> String {
    paint("1", text)
}

pub(super) fn dim(text: &str) -> String {
    paint("2", text)
}

pub(super) fn red(text: &str) -> String {
    paint("31", text)
}

pub(super) fn green(text: &str) -> String {
    paint("32", text)
}

pub(super) fn yellow(text: &str) -> String {
    paint("33", text)
}

fn paint(code: &str, text: &str) -> String {
    // <https://no-color.org>: set and not empty.
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if unwanted || !std::io::stdout().is_terminal() {
        return text.to_owned();
    }
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}
