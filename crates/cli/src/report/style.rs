//! Colour.

use comfy_table::{Cell, Color, ContentArrangement, Table};

use crate::output;

/// Adds colour to texts, or leaves them plain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// The style for standard output.
    pub(crate) fn of_output() -> Style {
        Style {
            colour: output::takes_colour(),
        }
    }

    /// Without colour.
    pub(crate) fn plain() -> Style {
        Style { colour: false }
    }

    /// A heading.
    pub(crate) fn strong(self, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[1m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// A table without lines.
    pub(crate) fn table(self, header: &[&str]) -> Table {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(header.iter().map(Cell::new));
        if self.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table
    }

    /// A cell, coloured by whether all is well.
    pub(crate) fn verdict(self, text: &str, is_well: bool) -> Cell {
        let cell = Cell::new(text);
        match (self.colour, is_well) {
            (false, _) => cell,
            (true, true) => cell.fg(Color::Green),
            (true, false) => cell.fg(Color::Yellow),
        }
    }
}

/// The lines of a table, without trailing white space.
pub(crate) fn lines(table: &Table) -> Vec<String> {
    let text = table.to_string();
    text.lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}
