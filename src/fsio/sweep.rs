use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{TEMP_PREFIX, TEMP_RANDOM, TEMP_SUFFIX, system};

/// The age at which a temporary file surely belongs to no living writer: a save takes milliseconds, and seconds
/// even on a failing disk.
pub(crate) const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// Removes the temporary files that killed writers left in `folder`, and returns their number.
///
/// It only removes regular files whose name has exactly the form of our temporary files and that were last
/// written at least `age` ago. A file that cannot be checked or removed is left for the next time. This lists
/// the whole folder, so it is done once an hour, not with every save.
pub(crate) fn sweep(folder: &Path, age: Duration) -> usize {
    let Ok(entries) = system::read_dir(folder) else {
        return 0;
    };
    let now = SystemTime::now();
    entries
        .filter_map(Result::ok)
        .filter(|entry| is_temporary(&entry.file_name()))
        .filter(|entry| {
            // This does not follow links: a link with such a name is not ours.
            entry.metadata().is_ok_and(|found| {
                found.is_file()
                    // A time stamp in the future does not show the age, so the file is kept.
                    && found
                        .modified()
                        .is_ok_and(|at| now.duration_since(at).is_ok_and(|old| old >= age))
            })
        })
        .filter(|entry| system::remove_file(&entry.path()).is_ok())
        .count()
}

/// Whether this is the name of one of our temporary files.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix(TEMP_PREFIX))
        .and_then(|rest| rest.strip_suffix(TEMP_SUFFIX))
        .is_some_and(|random| {
            random.len() == TEMP_RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::fs::File;

    fn write(folder: &Path, name: &str, age: Duration) {
        let path = folder.join(name);
        fs::write(&path, "x").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_old_temporary_files_of_ours_go() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (Duration::from_secs(7200), Duration::from_secs(60));
        let foreign = [
            ".agent-checkpoint-aaaaaaaaaaaa.tmp.bak",
            ".agent-checkpoint-aaaaaaaaaaa.tmp",
            ".agent-checkpoint-aaaaaa-aaaaa.tmp",
            ".tmpaaaaaaaaaaaa",
            "agent-checkpoint-aaaaaaaaaaaa.tmp",
            "state.json",
            "state.json.tmp",
        ];
        for name in foreign {
            write(folder.path(), name, old);
        }
        write(folder.path(), ".agent-checkpoint-newnewnewnew.tmp", new);
        write(folder.path(), ".agent-checkpoint-oldOLDold123.tmp", old);
        fs::create_dir(folder.path().join(".agent-checkpoint-folderfolder.tmp")).unwrap();

        assert_eq!(sweep(folder.path(), ABANDONED_AFTER), 1);
        let left = names(folder.path());
        assert_eq!(left.len(), foreign.len() + 2, "{left:?}");
        assert!(
            !left.iter().any(|name| name.contains("oldOLDold123")),
            "{left:?}"
        );
    }

    #[test]
    fn a_time_stamp_in_the_future_is_not_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".agent-checkpoint-aaaaaaaaaaaa.tmp");
        fs::write(&path, "x").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(7200))
            .unwrap();
        assert_eq!(sweep(folder.path(), Duration::ZERO), 0);
    }

    #[test]
    fn a_missing_folder_has_nothing_to_sweep() {
        assert_eq!(sweep(Path::new("/nonexistent/folder"), Duration::ZERO), 0);
    }
}
