//! Measures the JSON layer against plain serde_json in the same run.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::hint::black_box;

use agent_checkpoint::json::{Document, Identity, Rewrite};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Plan {
    name: String,
    status: String,
    steps: Vec<Step>,
    artifacts: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Step {
    id: u32,
    title: String,
    done: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

const IDENTITIES: &[Identity] = &[Identity {
    list: "steps",
    by: &["id"],
}];

/// A plan of about this many bytes.
fn plan(bytes: usize) -> Plan {
    let count = (bytes / 190).max(1) as u32;
    let step = |id| Step {
        id,
        title: format!("Write the part number {id} and its tests"),
        done: id % 2 == 0,
        note: (id % 3 == 0).then(|| "checked \"twice\"\n".to_owned()),
    };
    let artifact = |id: u32| {
        let files = vec![format!("src/part_{id}.rs"), format!("tests/part_{id}.rs")];
        (format!("part-{id:05}"), files)
    };
    Plan {
        name: "plan".into(),
        status: "running".into(),
        steps: (0..count).map(step).collect(),
        artifacts: (0..count).map(artifact).collect(),
    }
}

fn json(c: &mut Criterion) {
    for (size, bytes) in [("2KB", 2_000), ("1MB", 1_000_000)] {
        let document = Document::new(&plan(bytes)).unwrap();
        let text = document.text().to_owned();
        let reading = document.read::<Plan>().unwrap();
        let mut wanted = reading.value.clone();
        let middle = wanted.steps.len() / 2;
        wanted.steps[middle].done = !wanted.steps[middle].done;
        wanted.status = "done".into();
        let place = format!("/steps/{middle}/title");

        let mut group = c.benchmark_group("json");
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(BenchmarkId::new("serde_json_value", size), |b| {
            b.iter(|| serde_json::from_str::<serde_json::Value>(black_box(&text)).unwrap());
        });
        group.bench_function(BenchmarkId::new("serde_json_typed", size), |b| {
            b.iter(|| serde_json::from_str::<Plan>(black_box(&text)).unwrap());
        });
        group.bench_function(BenchmarkId::new("parse", size), |b| {
            b.iter(|| Document::parse(black_box(text.as_bytes())).unwrap());
        });
        group.bench_function(BenchmarkId::new("parse_and_edit_one_value", size), |b| {
            b.iter(|| {
                let mut document = Document::parse(black_box(text.as_bytes())).unwrap();
                document.set(&place, "another title").unwrap();
                document
            });
        });
        group.bench_function(BenchmarkId::new("parse_and_read", size), |b| {
            b.iter(|| {
                let document = Document::parse(black_box(text.as_bytes())).unwrap();
                document.read::<Plan>().unwrap()
            });
        });
        group.bench_function(BenchmarkId::new("read", size), |b| {
            b.iter(|| black_box(&document).read::<Plan>().unwrap());
        });
        group.bench_function(BenchmarkId::new("rewrite", size), |b| {
            let options = Rewrite::new().identities(IDENTITIES);
            b.iter_batched(
                || (),
                |()| {
                    document
                        .rewrite(&reading, black_box(&wanted), &options)
                        .unwrap()
                },
                BatchSize::LargeInput,
            );
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1)).without_plots();
    targets = json
}
criterion_main!(benches);
