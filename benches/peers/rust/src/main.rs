//! A contender of `../compare`: `peers ours FOLDER` or `peers redb FOLDER`, driven by lines.
//!
//! `save TEXT` saves the text durably as the state of the task, `load` reads the latest one, `fill` creates 1,000 other
//! tasks, `list` lists all tasks, `loads` lists them with their states. Each answers with its time in nanoseconds.

use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use agent_checkpoint::formats::task::TaskCheckpoint;
use agent_checkpoint::store::{CheckpointStore, FileStore, Query};
use agent_checkpoint::{Checkpoints, ErrorKind, Key};

type Failure = Box<dyn std::error::Error>;

trait Contender {
    fn save(&mut self, key: &str, note: &str) -> Result<(), Failure>;
    fn load(&mut self) -> Result<usize, Failure>;
    fn list(&mut self, whole: bool) -> Result<usize, Failure>;
}

/// The state that all contenders save: about 2 KB of JSON, like a real task.
fn state(note: &str) -> Result<TaskCheckpoint, Failure> {
    let text = fs::read_to_string(std::env::args().nth(3).unwrap_or_default())?;
    let document = agent_checkpoint::json::Document::from_text(text)?;
    let mut task = document.read::<TaskCheckpoint>()?.value;
    task.blockers = vec![note.to_owned()];
    Ok(task)
}

struct Ours {
    store: FileStore,
    tasks: Checkpoints<TaskCheckpoint>,
}

impl Contender for Ours {
    fn save(&mut self, key: &str, note: &str) -> Result<(), Failure> {
        let key = Key::new(key)?;
        let change = |task: &mut TaskCheckpoint| task.blockers = vec![note.to_owned()];
        match self.tasks.update(&key, change) {
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                self.tasks.create(&key, &state(note)?)?;
            }
            saved => drop(saved?),
        }
        Ok(())
    }

    fn load(&mut self) -> Result<usize, Failure> {
        let loaded = self.tasks.get(&Key::new("task")?)?;
        Ok(loaded.checkpoint.pending_steps.len())
    }

    fn list(&mut self, whole: bool) -> Result<usize, Failure> {
        let page = self.store.list(&Query::all())?;
        if whole {
            for key in page.keys() {
                self.tasks.get(key)?;
            }
        }
        Ok(page.entries.len())
    }
}

const TABLE: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("states");

struct Redb {
    database: redb::Database,
    state: String,
}

impl Contender for Redb {
    fn save(&mut self, key: &str, note: &str) -> Result<(), Failure> {
        let text = format!("{}{note}", self.state);
        let write = self.database.begin_write()?;
        write.open_table(TABLE)?.insert(key, text.as_bytes())?;
        write.commit()?;
        Ok(())
    }

    fn load(&mut self) -> Result<usize, Failure> {
        use redb::ReadableDatabase;
        let table = self.database.begin_read()?.open_table(TABLE)?;
        Ok(table
            .get("task")?
            .map_or(0, |text| text.value().to_vec().len()))
    }

    fn list(&mut self, whole: bool) -> Result<usize, Failure> {
        use redb::{ReadableDatabase, ReadableTable};
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let mut found = Vec::new();
        for entry in table.iter()? {
            let (key, text) = entry?;
            let text = if whole {
                text.value().to_vec()
            } else {
                Vec::new()
            };
            found.push((key.value().to_owned(), text));
        }
        Ok(found.len())
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (which, folder) = (arguments.next(), arguments.next());
    let folder = folder.unwrap_or_default();
    let folder = Path::new(&folder);
    let mut contender: Box<dyn Contender> = match which.as_deref() {
        Some("ours") => {
            let store = FileStore::open(folder);
            let tasks = Checkpoints::new(store.clone());
            Box::new(Ours { store, tasks })
        }
        _ => Box::new(Redb {
            database: redb::Database::create(folder.join("states.redb"))?,
            state: fs::read_to_string(std::env::args().nth(3).unwrap_or_default())?,
        }),
    };
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let begun = Instant::now();
        match verb {
            "save" => contender.save("task", rest)?,
            "load" => drop(contender.load()?),
            "list" => drop(contender.list(false)?),
            "loads" => drop(contender.list(true)?),
            _ => (0..1000).try_for_each(|n| contender.save(&format!("other-{n}"), rest))?,
        }
        println!("{}", begun.elapsed().as_nanos());
        std::io::stdout().flush()?;
    }
    Ok(())
}
