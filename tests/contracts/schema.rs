//! The JSON Schemas of the formats accept exactly what loads without a violation of shape.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{Reporting, line, start};
use agent_checkpoint::formats::Formats;
use agent_checkpoint::json::Document;
use agent_checkpoint::schema::{Contract, Schemas};
use agent_checkpoint::{Checkpoint, RuleContext};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(schema)
        .unwrap()
}

fn of(format: &str, contract: Contract) -> jsonschema::Validator {
    validator(&Schemas::default().get(format, contract).unwrap())
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    let published = root().join("docs/schemas");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        agent_checkpoint::schema::write_all(&published).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let written = agent_checkpoint::schema::write_all(folder.path()).unwrap();
    let names = |files: &[PathBuf]| -> BTreeSet<_> {
        files
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect()
    };
    let there: Vec<_> = std::fs::read_dir(&published)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(names(&there), names(&written));
    assert_eq!(
        written.len(),
        Formats::default().iter().count() * Contract::ALL.len()
    );
    for path in written {
        let published = published.join(path.file_name().unwrap());
        let same = std::fs::read(&published).unwrap() == std::fs::read(&path).unwrap();
        assert!(
            same,
            "{} is not what the types say; UPDATE_SCHEMAS=1 writes it anew",
            published.display()
        );
    }
}

#[test]
fn schemas_that_are_there_are_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = agent_checkpoint::schema::write_all(folder.path()).unwrap();
    let times = || -> Vec<_> {
        let modified = |path: &PathBuf| std::fs::metadata(path).unwrap().modified().unwrap();
        first.iter().map(modified).collect()
    };
    let before = times();
    std::fs::write(&first[0], "old").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(
        agent_checkpoint::schema::write_all(folder.path()).unwrap(),
        first
    );
    assert_ne!(times()[0], before[0]);
    assert_eq!(times()[1..], before[1..]);
    let blocked = folder.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let error = agent_checkpoint::schema::write_all(&blocked).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
}

/// All JSON files below a folder.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            into.push(path);
        }
    }
}

/// On every case of every format, and every example of the protocols, a schema accepts exactly what has no violation of
/// shape.
#[test]
fn cases_and_examples_are_accepted_exactly_when_they_have_no_violation_of_shape() {
    let formats = Formats::default();
    let mut all = Vec::new();
    files(&root().join("tests/cases"), &mut all);
    files(&root().join("tests/fixtures"), &mut all);
    let (mut accepted, mut refused) = (0, 0);
    for path in all {
        let Ok(document) = Document::parse(&std::fs::read(&path).unwrap()) else {
            continue;
        };
        let text = document.text().trim_start_matches('\u{feff}');
        // Other readers do not accept half a surrogate pair.
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        let folder = path
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap();
        let format = match formats.get(folder) {
            Ok(format) => *format,
            Err(_) => match formats.detect(&path, Some(&document)) {
                Ok(detected) => detected.format,
                Err(_) => continue,
            },
        };
        let violations = format.violations(&document, &RuleContext::none()).unwrap();
        let expected = !violations.iter().any(|it| it.code.is_shape());
        let validator = of(format.name(), Contract::Read);
        let errors: Vec<_> = validator
            .iter_errors(&value)
            .map(|e| e.to_string())
            .collect();
        assert_eq!(
            errors.is_empty(),
            expected,
            "{}: {violations:?} {errors:?}",
            path.display()
        );
        accepted += usize::from(expected);
        refused += usize::from(!expected);
    }
    assert!(accepted >= 40 && refused >= 30, "{accepted}, {refused}");
}

/// Calls `each` for every property of a schema, with its name and its schema.
fn properties(schema: &Value, each: &mut dyn FnMut(&str, &Value)) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties")
                && members.get("type").is_some_and(|kind| kind != "null")
            {
                for (name, property) in properties {
                    each(name, property);
                }
            }
            members.values().for_each(|inner| properties(inner, each));
        }
        Value::Array(elements) => elements.iter().for_each(|inner| properties(inner, each)),
        _ => {}
    }
}

/// Words that name the unit of a number.
const UNITS: [&str; 13] = [
    "percent",
    "seconds",
    "how many",
    "how often",
    "stage",
    "score",
    "count",
    "number",
    "line",
    "lines",
    "version",
    "1 to 10",
    "attempt",
];

#[test]
fn every_member_is_described_with_its_source_and_numbers_with_their_unit() {
    let schemas = Schemas::default();
    for name in schemas.names() {
        let mut count = 0;
        properties(
            &schemas.get(name, Contract::Read).unwrap(),
            &mut |member, schema| {
                count += 1;
                let description = schema.get("description").and_then(Value::as_str);
                let description = description.unwrap_or_else(|| panic!("{name}: {member}"));
                let (text, source) = description
                    .rsplit_once(" Source: ")
                    .unwrap_or_else(|| panic!("{name}: {member}: {description}"));
                assert!(
                    text.ends_with('.') && source.ends_with('.'),
                    "{description}"
                );
                let is_number = ["number", "integer"].iter().any(|kind| {
                    let own = &schema["type"];
                    own == kind
                        || own
                            .as_array()
                            .is_some_and(|all| all.iter().any(|k| k == kind))
                });
                let text = text.to_lowercase();
                assert!(
                    !is_number || UNITS.iter().any(|unit| text.contains(unit)),
                    "{name}: {member} does not tell its unit: {text}"
                );
            },
        );
        assert!(count > 5, "{name}: {count}");
    }
}

/// A save edits the existing text and adds nothing that it lacks, so files that other programs began still fit.
#[test]
fn what_a_save_writes_fits_the_write_schema() {
    use agent_checkpoint::formats::agent_session::AgentCheckpoint;
    use agent_checkpoint::formats::sitebuilder::SitebuilderCheckpoint;
    use agent_checkpoint::formats::task::TaskCheckpoint;
    use agent_checkpoint::store::{BuilderStateStore, FileStore};
    use agent_checkpoint::{CheckpointStoreExt, Key};
    let folder = tempfile::tempdir().unwrap();
    let now = chrono::Utc::now();
    let fits = |path: &Path, format: &str| {
        let text: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let validator = of(format, Contract::Write);
        let errors: Vec<_> = validator
            .iter_errors(&text)
            .map(|it| it.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{text}");
    };
    let host = folder.path().join("builder-state.json");
    std::fs::write(
        &host,
        r#"{"activePrd": {"id": "p", "currentStory": "US-1"}}"#,
    )
    .unwrap();
    let hosts = BuilderStateStore::open(&host);
    let tasks = hosts.checkpoints::<TaskCheckpoint>();
    let active = Key::new("active").unwrap();
    tasks
        .create(&active, &TaskCheckpoint::begin("a", ["one"], now))
        .unwrap();
    tasks
        .try_update(&active, |task| {
            task.report(line(r#"{"op":"block","text":"CI is down"}"#))
        })
        .unwrap();
    fits(&host, "builder-state");

    let agent = folder.path().join("secondary_a.json");
    let stamp = "2026-03-02 08:00:00Z";
    let text = format!(
        r#"{{"agent_id": "Secondary-A", "status": "IN_PROGRESS", "last_checkpoint": "{stamp}", "blockers": null}}"#
    );
    std::fs::write(&agent, text).unwrap();
    let files = FileStore::open(folder.path()).with_layout(AgentCheckpoint::layout());
    let agents = files.checkpoints::<AgentCheckpoint>();
    let key = Key::new("Secondary-A").unwrap();
    agents
        .try_update(&key, |agent| agent.report(start("one")))
        .unwrap();
    fits(&agent, "agent-session");

    let task = folder.path().join("media-T1.json");
    let text = format!(
        r#"{{"checkpoint_id": "c", "agent": "media", "task_id": "T1", "status": "in_progress", "updated_at": "{stamp}"}}"#
    );
    std::fs::write(&task, text).unwrap();
    let files = FileStore::open(folder.path()).with_layout(SitebuilderCheckpoint::layout());
    let site = files.checkpoints::<SitebuilderCheckpoint>();
    site.update(&Key::new("media-T1").unwrap(), |task| {
        task.resume_instructions = Some("go on".into());
    })
    .unwrap();
    fits(&task, "sitebuilder");
}

#[test]
fn every_version_has_a_summary_in_one_line_and_the_last_is_in_the_id() {
    let schemas = Schemas::default();
    for name in schemas.names() {
        let versions = schemas.versions(name);
        assert!(!versions.is_empty(), "{name}");
        for (version, number) in versions.iter().zip(1..) {
            assert_eq!(version.number, number, "{name}");
            let summary = version.summary;
            assert!(summary.len() > 20 && !summary.contains('\n') && summary.ends_with('.'));
        }
        let schema = schemas.get(name, Contract::Write).unwrap();
        let last = versions.last().unwrap();
        let id = format!("urn:agent-checkpoint:{name}.{}.write", last.number);
        assert_eq!(schema["$id"], id);
        let comment = schema["$comment"].as_str().unwrap();
        assert!(comment.contains(last.summary));
    }
    let task = agent_checkpoint::formats::task::TaskCheckpoint::SCHEMA_VERSIONS;
    let latest = agent_checkpoint::formats::task::TaskCheckpoint::latest_version();
    assert_eq!(task.last().map(|version| version.number), latest);
}

#[test]
fn there_is_a_schema_of_every_format() {
    let of_formats: BTreeSet<_> = Formats::default().iter().map(|it| it.name()).collect();
    let schemas = Schemas::default();
    assert_eq!(schemas.names().collect::<BTreeSet<_>>(), of_formats);
}

/// Calls `each` for every text under a keyword.
fn texts(schema: &Value, keyword: &str, each: &mut dyn FnMut(&str)) {
    match schema {
        Value::Object(members) => {
            for (name, inner) in members {
                match inner {
                    Value::String(text) if name == keyword => each(text),
                    Value::Object(named) if name == "patternProperties" => {
                        named.keys().for_each(|pattern| each(pattern));
                    }
                    _ => {}
                }
                texts(inner, keyword, each);
            }
        }
        Value::Array(elements) => elements.iter().for_each(|it| texts(it, keyword, each)),
        _ => {}
    }
}

#[test]
fn no_pattern_looks_around() {
    let schemas = Schemas::default();
    let mut count = 0;
    for name in schemas.names() {
        let schema = schemas.get(name, Contract::Read).unwrap();
        texts(&schema, "pattern", &mut |pattern| {
            count += 1;
            let looks = ["(?=", "(?!", "(?<"].iter().any(|it| pattern.contains(it));
            assert!(!looks, "{name}: {pattern}");
        });
    }
    assert!(count > 5, "{count}");
}

#[test]
fn a_required_member_is_among_the_members() {
    fn check(schema: &Value, at: &str) {
        if let (Some(names), Some(properties)) =
            (schema["required"].as_array(), schema.get("properties"))
        {
            for name in names.iter().filter_map(Value::as_str) {
                assert!(properties.get(name).is_some(), "{at}: {name}");
            }
        }
        for inner in schema
            .get("$defs")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            check(inner.1, &format!("{at}/{}", inner.0));
        }
    }
    let schemas = Schemas::default();
    for name in schemas.names() {
        check(&schemas.get(name, Contract::Read).unwrap(), name);
    }
}

#[test]
fn numbers_of_128_bits_have_their_limits() {
    let schema =
        |schema: Value| -> (Value, jsonschema::Validator) { (schema.clone(), validator(&schema)) };
    let (unsigned, validator) = schema(agent_checkpoint::schema::schema::<u128>());
    assert!(unsigned.get("format").is_none());
    assert!(validator.is_valid(&1e38.into()) && !validator.is_valid(&4e38.into()));
    assert!(!validator.is_valid(&(-1).into()));
    let (signed, validator) = schema(agent_checkpoint::schema::schema::<i128>());
    assert!(signed.get("format").is_none());
    assert!(validator.is_valid(&(-1e38).into()) && !validator.is_valid(&(-2e38).into()));
    assert!(!validator.is_valid(&2e38.into()));
}

#[test]
fn a_name_that_leads_out_of_the_folder_is_refused() {
    #[derive(
        Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
    )]
    #[serde(default)]
    struct Outside {}
    impl Checkpoint for Outside {
        const FORMAT: &'static str = "../x";
        fn updated_at(&self) -> Option<&agent_checkpoint::Timestamp> {
            None
        }
        fn stamp(&mut self, _: chrono::DateTime<chrono::Utc>) {}
        fn files(&self) -> Vec<&str> {
            Vec::new()
        }
        fn handoff(&self) -> agent_checkpoint::Handoff {
            agent_checkpoint::Handoff::default()
        }
        fn inspect(&self, _: &mut agent_checkpoint::formats::Inspection<'_>) {}
    }
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    let error = Schemas::none()
        .with::<Outside>()
        .write_all(&inner)
        .unwrap_err();
    assert!(error.to_string().contains("../x"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_schema_of_an_operation_takes_the_lines_that_are_read() {
    use agent_checkpoint::{Operation, schema};

    let schema = serde_json::to_value(schema::schema::<Operation>()).unwrap();
    let validator = validator(&schema);
    for (line, is_one) in [
        (r#"{"op":"step done"}"#, true),
        (
            r#"{"op":"step done","text":"a","current":true,"created":["b"]}"#,
            true,
        ),
        (r#"{"op":"step add","text":"a"}"#, true),
        (r#"{"op":"stage","name":2}"#, true),
        (r#"{"op":"stage","name":"2"}"#, true),
        (r#"{"op":"context","used":0.78}"#, true),
        (r#"{"op":"context","messages":30,"of":40}"#, true),
        (r#"{"op":"detail","unread":2,"plan":["a"]}"#, true),
        (r#"{"op":"heartbeat"}"#, true),
        (r#"{"op":"review","verdict":"ship","p1":2}"#, true),
        (r#"{"op":"gate pass","name":"a","phase":2}"#, true),
        ("{}", false),
        (r#"{"op":"fly"}"#, false),
        (r#"{"op":"note"}"#, false),
        (r#"{"op":"note","text":5}"#, false),
        (r#"{"op":"note","text":"a","why":"b"}"#, false),
        (r#"{"op":"heartbeat","text":"a"}"#, false),
        (r#"{"op":"stage","name":1.5}"#, false),
        (r#"{"op":"step done","created":"a"}"#, false),
    ] {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(validator.is_valid(&value), is_one, "{line}");
        let read = serde_json::from_value::<Operation>(value);
        assert_eq!(read.is_ok(), is_one, "{line}: {read:?}");
    }
}
