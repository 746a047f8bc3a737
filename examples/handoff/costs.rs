//! What recording cost the agents, against what the protocol's document asks for.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_checkpoint::recorder::Cost;

use super::Result;
use super::screen::{green, red};

/// What each agent noted last: a killed one gets no further.
pub(super) struct Costs {
    log: PathBuf,
}

/// The costs of all agents together.
#[derive(Default)]
struct Sum {
    saves: u32,
    bytes: u64,
    spent: Duration,
    task: Duration,
}

impl Costs {
    pub(super) fn of(root: &Path) -> Costs {
        Costs {
            log: root.join("costs.log"),
        }
    }

    pub(super) fn note(&self, agent: &str, cost: &Cost, task: Duration) -> Result<()> {
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)?;
        let (spent, task) = (cost.spent.as_micros(), task.as_micros());
        let line = format!("{agent} {} {} {spent} {task}\n", cost.saves, cost.bytes);
        log.write_all(line.as_bytes())?;
        Ok(())
    }

    fn sum(&self) -> Result<Sum> {
        let text = fs::read_to_string(&self.log)?;
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let last: BTreeMap<&str, &str> = lines.collect();
        let mut sum = Sum::default();
        for numbers in last.values() {
            let numbers: Vec<u64> = numbers
                .split(' ')
                .map(str::parse)
                .collect::<std::result::Result<_, _>>()?;
            let [saves, bytes, spent, task] = numbers[..] else {
                return Err(format!("half a line in {}", self.log.display()).into());
            };
            sum.saves += u32::try_from(saves)?;
            sum.bytes += bytes;
            sum.spent += Duration::from_micros(spent);
            sum.task += Duration::from_micros(task);
        }
        Ok(sum)
    }

    /// Shows the four numbers that the document asks for. `kept` is how many of how many begun steps whoever
    /// went on after the last stop found finished.
    pub(super) fn show(&self, kept: (usize, usize)) -> Result<()> {
        let sum = self.sum()?;
        if sum.saves == 0 {
            return Err("the agents recorded nothing".into());
        }
        let share = 100.0 * sum.spent.as_secs_f64() / sum.task.as_secs_f64();
        let each = 1000.0 * (sum.spent / sum.saves).as_secs_f64();
        let bytes = sum.bytes / u64::from(sum.saves);
        let kept = 100 * kept.0 / kept.1;
        let line = |what: &str, is: String, asked: &str, holds: bool| {
            let is = if holds { green(&is) } else { red(&is) };
            println!("   {what:<27} {is}  (asked: {asked})");
        };
        line(
            "share of task time",
            format!("{share:.1} %"),
            "under 5 %",
            share < 5.0,
        );
        line(
            "a save",
            format!("{each:.1} ms"),
            "under 50 ms",
            each < 50.0,
        );
        line(
            "a checkpoint, on average",
            format!("{bytes} bytes"),
            "under 2048",
            bytes < 2048,
        );
        line(
            "begun steps that were kept",
            format!("{kept} %"),
            "over 50 %",
            kept > 50,
        );
        Ok(())
    }
}
