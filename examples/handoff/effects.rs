//! The effects of the steps outside the checkpoint: here a log, elsewhere commits or messages.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Result;

/// A log of the agents that began a step or completed its effect.
pub(super) struct Effects {
    log: PathBuf,
}

impl Effects {
    pub(super) fn of(root: &Path) -> Effects {
        Effects {
            log: root.join("effects.log"),
        }
    }

    pub(super) fn note_begun(&self, step: &str, agent: &str) -> Result<()> {
        self.append("begun", step, agent)
    }

    pub(super) fn note_done(&self, step: &str, agent: &str) -> Result<()> {
        self.append("done", step, agent)
    }

    /// The agents that began a step, once for each begin.
    pub(super) fn begun(&self, step: &str) -> Result<Vec<String>> {
        self.agents("begun", step)
    }

    /// The agents that completed the effect of a step, once for each time.
    pub(super) fn done(&self, step: &str) -> Result<Vec<String>> {
        self.agents("done", step)
    }

    fn append(&self, what: &str, step: &str, agent: &str) -> Result<()> {
        let line = format!("{what}\t{step}\t{agent}\n");
        let mut log = File::options().create(true).append(true).open(&self.log)?;
        log.write_all(line.as_bytes())?;
        log.sync_data()?;
        Ok(())
    }

    fn agents(&self, what: &str, step: &str) -> Result<Vec<String>> {
        let text = match fs::read_to_string(&self.log) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let wanted = format!("{what}\t{step}\t");
        let agents = text.lines().filter_map(|line| line.strip_prefix(&wanted));
        Ok(agents.map(str::to_owned).collect())
    }
}
