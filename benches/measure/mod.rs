//! Reliable ratios on a noisy machine: contenders take turns in random order, in one run.
//!
//! Every round runs each contender once, in a new random order. So other load on the machine, and the caches that the
//! contender before left, affect all of them alike. The result is the ratio to the first contender. Let it compete a
//! second time, and the table shows how far two equal things differ in this run.
#![allow(dead_code, reason = "each bench uses what it needs")]
#![allow(clippy::print_stdout, reason = "a bench reports to the terminal")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot run should say where"
)]
#![allow(unreachable_pub, reason = "a module of several programs")]

pub mod plot;
pub mod work;

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of rounds that warm the caches and are not counted.
const WARM: usize = 20;

/// One of the compared programs.
pub struct Contender<'a> {
    name: String,
    most: Option<f64>,
    run: Box<dyn FnMut(usize) -> Duration + 'a>,
}

impl<'a> Contender<'a> {
    /// A contender that calls `run` in round `n`. The name describes it as in a sentence.
    pub fn new(name: impl Into<String>, run: impl FnMut(usize) + 'a) -> Self {
        Self::prepared(name, |n| n, run)
    }

    /// A contender that needs a preparation in each round, which is not measured.
    pub fn prepared<P>(
        name: impl Into<String>,
        mut prepare: impl FnMut(usize) -> P + 'a,
        mut run: impl FnMut(P) + 'a,
    ) -> Self {
        let run = move |n| {
            let prepared = prepare(n);
            let begin = Instant::now();
            run(prepared);
            begin.elapsed()
        };
        Contender {
            name: name.into(),
            most: None,
            run: Box::new(run),
        }
    }

    /// Sets the goal: at most `ratio` times the time of the first contender.
    pub fn at_most(mut self, ratio: f64) -> Self {
        self.most = Some(ratio);
        self
    }
}

/// The times of one contender.
pub struct Measured {
    pub name: String,
    pub median: Duration,
    pub p99: Duration,
    /// Its median, divided by the median of the first contender.
    pub ratio: f64,
    /// The same ratio for the tenth percentiles: on a busy machine the fast rounds are the undisturbed ones.
    pub undisturbed: f64,
    most: Option<f64>,
}

impl Measured {
    fn print(&self) {
        let goal = self.most.map_or(String::new(), |most| {
            let verdict = if self.ratio <= most { "" } else { " (missed)" };
            format!("<= {most:.2}{verdict}")
        });
        println!(
            "| {:6.2} | {:6.2} | {goal:16} | {:>9} | {:>9} | {}",
            self.ratio,
            self.undisturbed,
            short(self.median),
            short(self.p99),
            self.name
        );
    }
}

/// Runs the contenders in random order and prints the median and the 99th percentile of each, and the ratios of its
/// median and of its 10th percentile to those of the first one.
pub fn compare(title: &str, rounds: usize, contenders: &mut [Contender<'_>]) -> Vec<Measured> {
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(rounds); contenders.len()];
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut random = Random::new();
    for round in 0..rounds + WARM {
        random.shuffle(&mut order);
        for &at in &order {
            let time = (contenders[at].run)(round);
            if round >= WARM {
                times[at].push(time);
            }
        }
    }
    println!("\n{title} ({rounds} rounds{})", load());
    println!("|  ratio |  (p10) | goal             |    median |       p99 | what");
    let mut bases = None;
    let mut all = Vec::new();
    for (times, contender) in times.iter_mut().zip(contenders.iter()) {
        times.sort();
        let median = at(times, 0.5);
        let fast = at(times, 0.1);
        let (base, base_fast) = *bases.get_or_insert((median, fast));
        let measured = Measured {
            name: contender.name.clone(),
            median,
            p99: at(times, 0.99),
            ratio: median.as_secs_f64() / base.as_secs_f64(),
            undisturbed: fast.as_secs_f64() / base_fast.as_secs_f64(),
            most: contender.most,
        };
        measured.print();
        all.push(measured);
    }
    all
}

/// The time that this fraction of the sorted times does not exceed.
pub fn at(sorted: &[Duration], part: f64) -> Duration {
    let last = sorted.len().saturating_sub(1);
    let place = (part * sorted.len() as f64) as usize;
    sorted.get(place.min(last)).copied().unwrap_or_default()
}

/// A time with about three digits.
pub fn short(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..100.0 => format!("{micros:.1} us"),
        ..10_000.0 => format!("{micros:.0} us"),
        _ => format!("{:.1} ms", micros / 1e3),
    }
}

/// A part of a bench: its name, and its function, which gets an empty folder.
pub type Part = (&'static str, fn(&Path));

/// Runs the requested parts, each in a new folder inside the current one, and so on a disk: a folder in memory would
/// need no sync.
pub fn run(parts: &[Part]) {
    let folder = tempfile::tempdir_in(".").unwrap();
    for (name, part) in parts {
        if is_wanted(name) {
            let folder = folder.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            part(&folder);
        }
    }
}

/// Whether a part of a bench is requested: `cargo bench --bench saves -- growth` runs only the parts with that word in
/// their names.
pub fn is_wanted(part: &str) -> bool {
    let mut asked = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .peekable();
    asked.peek().is_none() || asked.any(|word| part.contains(&word))
}

/// The load of the machine, if it reports one.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().unwrap_or_default();
    if load.is_empty() {
        return String::new();
    }
    format!(", load average {load}")
}

/// A simple random number generator (xorshift), seeded by the system.
pub struct Random(u64);

impl Random {
    pub fn new() -> Self {
        Random(RandomState::new().hash_one(0) | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at + 1));
        }
    }
}
