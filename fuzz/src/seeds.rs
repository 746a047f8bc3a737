//! The cases and examples of the library's own tests.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Name and bytes of every seed, sorted by name: the files below `tests/cases` and `tests/fixtures`.
pub(crate) fn seeds() -> &'static [(String, Vec<u8>)] {
    static SEEDS: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
        let mut seeds = Vec::new();
        for folder in ["cases", "fixtures"] {
            gather(&tests.join(folder), folder, &mut seeds);
        }
        assert!(seeds.len() > 50, "the seeds are not where they were");
        seeds.sort();
        seeds
    })
}

/// Writes the seeds where a fuzzer of this target looks for what to begin with.
pub(crate) fn write_corpus(target: &str) {
    let fuzzed = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/__fuzz__");
    let corpus = fuzzed.join(target).join("corpus");
    fs::create_dir_all(&corpus).expect("the checkout can be written");
    for (name, bytes) in seeds() {
        fs::write(corpus.join(name), bytes).expect("the checkout can be written");
    }
}

fn gather(folder: &Path, name: &str, into: &mut Vec<(String, Vec<u8>)>) {
    let files = fs::read_dir(folder).expect("the seeds are in the repository");
    for file in files {
        let path = file.expect("a folder of the repository").path();
        let name = format!("{name}-{}", path.file_name().unwrap_or_default().display());
        if path.is_dir() {
            gather(&path, &name, into);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            into.push((name, fs::read(path).expect("a file of the repository")));
        }
    }
}
