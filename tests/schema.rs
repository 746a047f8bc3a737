//! The JSON Schemas of the formats: what they accept is what loads without a violation of shape.
#![cfg(feature = "schema")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use agent_checkpoint::checkpoint::Knowledge;
use agent_checkpoint::json::Document;
use agent_checkpoint::schema::{Contract, Schemas, value_of_tool_input};
use agent_checkpoint::strategies::valid;
use agent_checkpoint::{Checkpoint, Formats, formats};
use proptest::prelude::*;
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

/// Every case of every format, and every example of the protocols: a schema accepts what has no violation of shape.
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
        // Half a surrogate pair is nothing that other readers can take.
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
        let violations = (format.examine)(&document, &Knowledge::none()).unwrap();
        let expected = !violations.iter().any(|it| it.code.is_shape());
        let validator = of(format.name, Contract::Read);
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

/// Words that tell in what a number is.
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

/// A save edits the text that is there, and adds nothing that it lacks: files that others began fit all the same.
#[test]
fn what_a_save_writes_fits_the_write_schema() {
    use agent_checkpoint::formats::{AgentCheckpoint, SitebuilderCheckpoint};
    use agent_checkpoint::{BuilderStateStore, CheckpointStoreExt, FileStore, Key, TaskCheckpoint};
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
        .try_update(&active, |task| task.block("CI is down"))
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
        .try_update(&key, |agent| agent.start_step("one").map(|_| ()))
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
        task.instruct("go on")
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
    let task = agent_checkpoint::TaskCheckpoint::SCHEMA_VERSIONS;
    let latest = agent_checkpoint::TaskCheckpoint::latest_version();
    assert_eq!(task.last().map(|version| version.number), latest);
}

/// Whether a schema is one that strict tools take, wherever one stands in it.
fn assert_strict(schema: &Value, at: &str) {
    let Value::Object(members) = schema else {
        panic!("{at}: {schema} is no object");
    };
    for keyword in members.keys() {
        let known = [
            "$schema",
            "$id",
            "$comment",
            "$defs",
            "$ref",
            "title",
            "description",
            "type",
            "enum",
            "const",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "anyOf",
            "format",
        ];
        assert!(known.contains(&keyword.as_str()), "{at}: {keyword}");
    }
    if let Some(properties) = members.get("properties").and_then(Value::as_object) {
        let names: BTreeSet<_> = properties.keys().map(String::as_str).collect();
        let required = members["required"].as_array().unwrap();
        let required: BTreeSet<_> = required.iter().filter_map(Value::as_str).collect();
        assert_eq!(names, required, "{at}");
        assert_eq!(members["additionalProperties"], false, "{at}");
        for (name, inner) in properties {
            assert_strict(inner, &format!("{at}/{name}"));
        }
    }
    for inner in members
        .get("$defs")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        assert_strict(inner.1, &format!("{at}/$defs/{}", inner.0));
    }
    for inner in members
        .get("anyOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        assert_strict(inner, at);
    }
    if let Some(items) = members.get("items") {
        assert_strict(items, &format!("{at}/-"));
    }
}

#[test]
fn the_schemas_for_tools_are_strict() {
    let schemas = Schemas::default();
    for name in schemas.names() {
        let schema = schemas.get(name, Contract::Tool).unwrap();
        assert_strict(&schema, name);
        validator(&schema);
    }
    let story = schemas.get("story-pipeline", Contract::Tool).unwrap();
    assert!(story["properties"].get("storyId").is_some());
    assert!(story["properties"].get("story_id").is_none());
}

/// What a model would give for a value: each map as a list of names and values, and `null` for what is not there.
fn as_tool_input(value: &Value, tool: &Value, root: &Value) -> Value {
    if let Some(target) = tool.get("$ref").and_then(Value::as_str) {
        return as_tool_input(value, root.pointer(&target[1..]).unwrap(), root);
    }
    if let Some(branches) = tool.get("anyOf").and_then(Value::as_array) {
        let branches: Vec<_> = branches.iter().filter(|it| it["type"] != "null").collect();
        return match &branches[..] {
            [only] if !value.is_null() => as_tool_input(value, only, root),
            _ => value.clone(),
        };
    }
    match value {
        Value::Object(members) if tool.get("items").is_some() => {
            let schema = &tool["items"]["properties"]["value"];
            let entry = |(name, value)| serde_json::json!({"name": name, "value": as_tool_input(value, schema, root)});
            members.iter().map(entry).collect()
        }
        Value::Object(members) => {
            let properties = tool["properties"].as_object().unwrap();
            let member = |(name, schema): (&String, &Value)| {
                let value = members.get(name).unwrap_or(&Value::Null);
                (name.clone(), as_tool_input(value, schema, root))
            };
            Value::Object(properties.iter().map(member).collect())
        }
        Value::Array(elements) => {
            let elements = elements.iter();
            elements
                .map(|it| as_tool_input(it, &tool["items"], root))
                .collect()
        }
        scalar => scalar.clone(),
    }
}

/// Valid checkpoints can be given as the input of a tool, and come back: this many of 200 at least. Not all of formats
/// with members of any JSON, of which a tool takes texts, numbers, truth values and lists of texts, and of formats with
/// two revisions, of which a tool is asked for one.
fn comes_back_from_a_tool<C>(format: &str, least: u32)
where
    C: Checkpoint + Arbitrary + std::fmt::Debug + schemars::JsonSchema,
{
    let schema = Schemas::default().get(format, Contract::Tool).unwrap();
    let validator = validator(&schema);
    let config = proptest::test_runner::Config {
        cases: 200,
        failure_persistence: None,
        ..Default::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let kept = std::cell::Cell::new(0);
    let result = runner.run(&valid::<C>(), |checkpoint| {
        let value = serde_json::to_value(&checkpoint).unwrap();
        let input = as_tool_input(&value, &schema, &schema);
        let errors: Vec<_> = validator
            .iter_errors(&input)
            .map(|it| it.to_string())
            .collect();
        if errors.is_empty() {
            let restored = value_of_tool_input::<C>(input);
            let read = Document::new(&restored).unwrap().read::<C>().unwrap();
            prop_assert_eq!(&read.violations, &[]);
            if read.value == checkpoint {
                kept.set(kept.get() + 1);
            }
        }
        Ok(())
    });
    result.unwrap();
    let kept = kept.get();
    assert!(kept >= least, "{format}: only {kept} of 200 came back");
}

#[test]
fn what_a_tool_was_given_is_the_checkpoint_again() {
    comes_back_from_a_tool::<agent_checkpoint::TaskCheckpoint>("task", 200);
    comes_back_from_a_tool::<formats::AgentCheckpoint>("agent-session", 200);
    comes_back_from_a_tool::<formats::SitebuilderCheckpoint>("sitebuilder", 200);
    comes_back_from_a_tool::<formats::StoryCheckpoint>("story-pipeline", 110);
    comes_back_from_a_tool::<formats::PipelineState>("story-pipeline-state", 180);
    comes_back_from_a_tool::<formats::BuildCheckpoint>("build-pipeline", 12);
}

#[test]
fn what_is_in_no_form_of_a_tool_is_left_for_the_reader() {
    for input in [
        serde_json::json!({"acceptance_criteria_met": [{"name": "a", "value": true}, {"name": "a", "value": false}]}),
        serde_json::json!({"acceptance_criteria_met": [{"name": "a"}]}),
        serde_json::json!({"acceptance_criteria_met": "all"}),
        serde_json::json!([1]),
    ] {
        let same = value_of_tool_input::<formats::SitebuilderCheckpoint>(input.clone());
        assert_eq!(same, input);
    }
}

#[test]
fn there_is_a_schema_of_every_format() {
    let of_formats: BTreeSet<_> = Formats::default().iter().map(|it| it.name).collect();
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
    let (unsigned, validator) = schema(agent_checkpoint::schema::schema::<u128>(Contract::Read));
    assert!(unsigned.get("format").is_none());
    assert!(validator.is_valid(&1e38.into()) && !validator.is_valid(&4e38.into()));
    assert!(!validator.is_valid(&(-1).into()));
    let (signed, validator) = schema(agent_checkpoint::schema::schema::<i128>(Contract::Read));
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
        fn inspect(&self, _: &mut agent_checkpoint::Inspection<'_>) {}
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

mod of_others {
    //! Types as others have them.
    #![allow(dead_code, reason = "only their schemas are looked at")]

    use std::collections::{BTreeMap, BTreeSet};

    use schemars::JsonSchema;

    #[derive(JsonSchema)]
    pub(super) enum Colour {
        /// Like blood.
        Red,
        /// Like grass.
        Green,
    }

    #[derive(JsonSchema)]
    pub(super) enum Outer {
        Map(BTreeMap<String, u8>),
        List(Vec<String>),
    }

    #[derive(JsonSchema)]
    #[serde(tag = "kind")]
    pub(super) enum Inner {
        One { n: u8 },
        Two { map: BTreeMap<String, bool> },
    }

    #[derive(JsonSchema)]
    #[serde(untagged)]
    pub(super) enum MapOrList {
        Map(BTreeMap<String, u8>),
        List(Vec<String>),
    }

    #[derive(JsonSchema)]
    #[schemars(rename = "A Bé/c")]
    pub(super) struct Named {
        pub(super) map: BTreeMap<String, u8>,
    }

    #[derive(JsonSchema)]
    pub(super) struct All {
        colour: Colour,
        outer: Outer,
        inner: Inner,
        either: MapOrList,
        named: Named,
        set: BTreeSet<String>,
        three: [u8; 3],
        long: u128,
        #[schemars(regex(pattern = "^a$"))]
        text: String,
    }

    #[derive(JsonSchema)]
    pub(super) struct Rest {
        declared: u8,
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    }

    #[derive(JsonSchema)]
    pub(super) struct Flat {
        declared: u8,
        #[serde(flatten)]
        inner: Inner,
    }

    #[derive(JsonSchema)]
    pub(super) struct Pair {
        at: (u8, u8),
    }
}

#[test]
fn schemas_for_tools_of_other_types_are_strict_or_refused() {
    use agent_checkpoint::schema::tool_schema;
    let all = tool_schema::<of_others::All>().unwrap();
    assert_strict(&all, "All");
    validator(&all);
    let colour = &all["$defs"]["Colour"];
    assert_eq!(colour["enum"], serde_json::json!(["Red", "Green"]));
    let told = colour["description"].as_str().unwrap();
    assert!(told.contains("\"Green\": Like grass."), "{told}");
    let text = |name: &str| all["properties"][name]["description"].to_string();
    assert!(text("set").contains("uniqueItems") && text("three").contains("minItems"));
    assert!(text("long").contains("exclusiveMaximum") && text("text").contains("^a$"));
    let refusals = [
        (tool_schema::<of_others::Rest>(), "Rest"),
        (tool_schema::<of_others::Flat>(), "Flat"),
        (tool_schema::<of_others::Pair>(), "/properties/at"),
    ];
    for (result, named) in refusals {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn a_map_in_an_alternative_is_restored_and_a_list_stays() {
    let map = serde_json::json!([{"name": "a", "value": 1}]);
    let input = serde_json::json!({
        "outer": {"Map": map}, "named": {"map": map}, "either": [],
        "inner": {"kind": "Two", "map": [{"name": "a", "value": true}]},
    });
    let restored = value_of_tool_input::<of_others::All>(input);
    let expected = serde_json::json!({
        "outer": {"Map": {"a": 1}}, "named": {"map": {"a": 1}}, "either": [],
        "inner": {"kind": "Two", "map": {"a": true}},
    });
    assert_eq!(restored, expected);
    let input = serde_json::json!({"either": map, "outer": {"List": []}});
    let restored = value_of_tool_input::<of_others::All>(input);
    assert_eq!(
        restored,
        serde_json::json!({"either": {"a": 1}, "outer": {"List": []}})
    );
}
