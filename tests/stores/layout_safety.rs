//! No key reaches files of others: names that differ only in case, links that lead elsewhere, modes.

use std::fs;
use std::path::Path;

use crate::common::{key, time, tree};
use agent_checkpoint::CheckpointStoreExt;
use agent_checkpoint::formats::agent_session::AgentCheckpoint;
use agent_checkpoint::formats::agent_session::{TakeOver, take_over};
use agent_checkpoint::json::Document;
use agent_checkpoint::store::{
    BuilderStateStore, CheckpointStore, DeleteOptions, FileOptions, FileStore, Keep, Put,
    RecoverOptions, Recovery, Stored,
};
use agent_checkpoint::{Checkpoint, ClaimRequest, DropReason, Dropped, ErrorKind};

fn put(store: &FileStore, name: &str, text: &str) -> agent_checkpoint::Result<()> {
    let document = Document::from_text(text).unwrap();
    store.put(&key(name), Put::new(document.clone())).map(drop)
}

#[test]
fn a_key_that_differs_only_in_case_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    put(&store, "US-1", "{}").unwrap();
    for twin in ["us-1", "Us-1"] {
        let error = put(&store, twin, "{}").unwrap_err();
        assert_eq!(error.code(), "twin");
        assert!(error.to_string().contains("US-1.json exists"), "{error}");
        assert!(error.to_string().contains("choose another key"), "{error}");
        assert!(!error.to_string().contains("  "), "{error}");
        assert!(!error.to_string().contains('\\'), "{error}");
        assert!(!folder.path().join(format!("{twin}.json")).exists());
    }
    put(&store, "US-1", "{\"a\":1}").unwrap();
    put(&store, "US-2", "{}").unwrap();
    // The name is free again when the other is gone.
    store.delete(&key("US-1"), &DeleteOptions::new()).unwrap();
    put(&store, "us-1", "{}").unwrap();
    assert!(put(&store, "US-1", "{}").is_err());
}

#[test]
fn twins_that_are_there_already_stay_two_unless_they_are_one_file() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("A.json", "{\"n\":1}"), ("a.json", "{\"n\":2}")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    if fs::read_dir(folder.path()).unwrap().count() == 1 {
        return; // A file system that does not tell them apart.
    }
    let store = FileStore::open(folder.path());
    put(&store, "A", "{\"n\":3}").unwrap();
    put(&store, "a", "{\"n\":4}").unwrap();
    let text = |name: &str| {
        store
            .load(&key(name))
            .unwrap()
            .unwrap()
            .document
            .text()
            .to_owned()
    };
    assert_eq!(
        (text("A"), text("a")),
        ("{\"n\":3}".into(), "{\"n\":4}".into())
    );

    // As on a file system that ignores case: two names of one file.
    fs::remove_file(folder.path().join("a.json")).unwrap();
    fs::hard_link(folder.path().join("A.json"), folder.path().join("a.json")).unwrap();
    let mut refused = 0;
    for name in ["A", "a"] {
        refused += usize::from(put(&store, name, "{\"n\":5}").is_err());
    }
    assert_eq!(refused, 1, "one of the two names is the one that counts");
}

#[cfg(unix)]
#[test]
fn links_in_the_folder_that_lead_outside_are_refused() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("store");
    fs::create_dir(&inside).unwrap();
    let secret = folder.path().join("secret.json");
    fs::write(&secret, "{\"secret\":1}").unwrap();
    symlink("../secret.json", inside.join("out.json")).unwrap();
    fs::write(inside.join("real.json"), "{}").unwrap();
    symlink("real.json", inside.join("in.json")).unwrap();
    let store = FileStore::open(&inside);
    let out = key("out");
    let outside = |error: agent_checkpoint::Error| {
        assert_eq!(error.code(), "leads-outside", "{error}");
    };
    outside(store.load(&out).unwrap_err());
    outside(put(&store, "out", "{}").unwrap_err());
    outside(store.delete(&out, &DeleteOptions::new()).unwrap_err());
    outside(store.states(&out).unwrap_err());
    let claim = ClaimRequest::new("a", std::time::Duration::from_secs(60));
    outside(store.claim(&out, &claim).unwrap_err());
    outside(
        store
            .recover(&out, &RecoverOptions::new(Recovery::Fresh))
            .unwrap_err(),
    );
    assert_eq!(fs::read_to_string(&secret).unwrap(), "{\"secret\":1}");
    assert!(inside.join("out.json").is_symlink());

    // A link that stays inside is followed and stays a link.
    put(&store, "in", "{\"a\":1}").unwrap();
    assert_eq!(
        fs::read_to_string(inside.join("real.json")).unwrap(),
        "{\"a\":1}"
    );
    assert!(inside.join("in.json").is_symlink());
    // A file that the caller names may be a link to anywhere.
    let single = FileStore::single(inside.join("out.json"), FileOptions::default()).unwrap();
    assert!(single.load(single.key().unwrap()).unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn a_folder_of_ours_that_is_a_link_to_elsewhere_is_refused() {
    use std::os::unix::fs::symlink;
    for ours in [".agent-checkpoint", ".agent-checkpoint/history"] {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("store"), folder.path().join("outside"));
        let link = inside.join(ours);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::create_dir(&outside).unwrap();
        symlink(&outside, &link).unwrap();
        let store = FileStore::open(&inside);
        let first = put(&store, "a", "{}");
        let second = put(&store, "a", "{\"b\":1}");
        let error = first.and(second).unwrap_err();
        assert_eq!(error.code(), "leads-outside", "{ours}: {error}");
        assert!(tree(&outside).is_empty(), "{ours}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_of_ours_that_is_a_link_is_not_followed() {
    use std::os::unix::fs::symlink;
    let claim = r#"{"": {"owner": "a", "fence": 1, "expires": "2999-01-01T00:00:00Z"}}"#;
    for leads_to in ["victim", "missing"] {
        let folder = tempfile::tempdir().unwrap();
        let (inside, victim) = (folder.path().join("store"), folder.path().join("victim"));
        put(&FileStore::open(&inside), "a", "{}").unwrap();
        fs::write(&victim, claim).unwrap();
        let own = inside.join(".agent-checkpoint");
        fs::create_dir(own.join("claims")).unwrap();
        let replace = |name: &str| {
            let _ = fs::remove_file(own.join(name));
            symlink(folder.path().join(leads_to), own.join(name)).unwrap();
        };
        // This file says nothing about the checkpoint, so no save fails because of it.
        replace("swept");
        put(&FileStore::open(&inside), "a", "{\"b\":1}").unwrap();
        // A stranger must not decide which version laid out the folder.
        replace("layout");
        let error = put(&FileStore::open(&inside), "a", "{\"b\":2}").unwrap_err();
        assert_eq!(error.code(), "not-a-file", "{error}");
        fs::remove_file(own.join("layout")).unwrap();
        // A stranger must not decide who may write.
        replace("claims/a.json.json");
        let error = put(&FileStore::open(&inside), "a", "{\"b\":2}").unwrap_err();
        assert_eq!(error.code(), "not-a-file", "{error}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), claim);
        assert!(!folder.path().join("missing").exists());
    }
}

#[cfg(unix)]
#[test]
fn what_stands_where_our_own_folders_belong_is_named() {
    use std::os::unix::fs::symlink;
    let own = ".agent-checkpoint";
    for (name, leads_to, is_read, code) in [
        ("", None, true, "not-a-folder"),
        ("", Some("nowhere"), true, "dangling-link"),
        ("locks", None, false, "not-a-folder"),
        ("history", None, true, "not-a-folder"),
        ("history", Some("nowhere"), true, "dangling-link"),
        ("claims", Some("nowhere"), true, "dangling-link"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        put(&FileStore::open(folder.path()), "a", "{}").unwrap();
        put(&FileStore::open(folder.path()), "a", "{\"b\":1}").unwrap();
        let place = match name {
            "" => folder.path().join(own),
            name => folder.path().join(own).join(name),
        };
        let _ = fs::remove_dir_all(&place);
        match leads_to {
            Some(nowhere) => symlink(nowhere, &place).unwrap(),
            None => fs::write(&place, "x").unwrap(),
        }
        let file = folder.path().join("a.json");
        let single = FileStore::single(&file, FileOptions::default()).unwrap();
        let stores: [(Box<dyn CheckpointStore>, &str); 3] = [
            (Box::new(FileStore::open(folder.path())), "a"),
            (Box::new(single), "a"),
            (Box::new(BuilderStateStore::open(&file)), "top"),
        ];
        for (store, of) in stores {
            let next = Put::new(Document::from_text("{\"b\":2}").unwrap());
            let mut errors = vec![store.put(&key(of), next).unwrap_err()];
            if is_read {
                errors.push(store.states(&key(of)).unwrap_err());
            }
            if code == "dangling-link" {
                errors.push(store.claimed(&key(of)).unwrap_err());
            }
            for error in errors {
                assert_eq!(error.code(), code, "{name}, {of}: {error}");
                assert_eq!(error.path(), Some(&*place), "{name}, {of}: {error}");
                assert!(error.to_string().contains("; "), "{name}, {of}: {error}");
            }
        }
    }
}

#[test]
fn our_own_folder_is_made_whole_when_it_is_removed_under_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join(".agent-checkpoint");
    let store = FileStore::open(folder.path());
    put(&store, "a", "{}").unwrap();
    let next = Document::from_text("{\"b\":1}").unwrap();
    let dropped = Dropped::new("/steps", DropReason::Elements(1), 1.into());
    let next = Put::new(next).with_dropped(vec![dropped]);
    let clean = &mut |_: Option<&Stored>| {
        fs::remove_dir_all(&own).unwrap();
        Ok(Some(next.clone()))
    };
    store
        .exclusive()
        .unwrap()
        .with_lock(&key("a"), clean)
        .unwrap();
    assert_eq!(store.beside().dropped(&key("a")).unwrap().len(), 1);
    let ignored = fs::read_to_string(own.join(".gitignore")).unwrap();
    assert!(ignored.starts_with("*\n"), "{ignored}");
    put(&store, "a", "{\"b\":2}").unwrap();
    assert_eq!(fs::read_to_string(own.join("layout")).unwrap(), "2\n");
}

#[cfg(unix)]
#[test]
fn what_is_kept_beside_a_checkpoint_is_no_wider_open_than_it() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for options in [
        FileOptions::default(),
        FileOptions::default().copying_history(),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        fs::write(&file, "{}").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let store = FileStore::with_options(folder.path(), options);
        put(&store, "a", "{\"a\":1}").unwrap();
        store.pin(&key("a"), &"1".parse().unwrap(), true).unwrap();
        let request = ClaimRequest::new("me", std::time::Duration::from_secs(60));
        let claim = store.claim(&key("a"), &request).unwrap();
        fs::write(&file, "{").unwrap();
        let recover = RecoverOptions::new(Recovery::Newest).with_fence(Some(claim.fence));
        store.recover(&key("a"), &recover).unwrap();
        assert_eq!(mode(&file), 0o600);
        let own = folder.path().join(".agent-checkpoint");
        for name in tree(&own) {
            let path = own.join(&name);
            // Every user of the folder reads these, and they contain nothing of a checkpoint.
            let is_bare = name.starts_with("locks") || name == ".gitignore" || name == "layout";
            if path.is_file() && !is_bare {
                assert_eq!(mode(&path), 0o600, "{name}");
            }
        }
    }
}

#[test]
fn without_history_nothing_is_kept_and_its_absence_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::with_options(folder.path(), FileOptions::default().without_history());
    put(&store, "a", "{}").unwrap();
    put(&store, "a", "{\"a\":1}").unwrap();
    assert!(store.history().is_none());
    let error = store.states(&key("a")).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotOffered { what: "history" });
    assert!(
        !tree(folder.path())
            .iter()
            .any(|name| name.contains("history"))
    );
}

#[test]
fn history_lies_outside_of_the_folder_that_is_listed_and_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::default().with_history(Keep::newest(3));
    let store = FileStore::with_options(folder.path(), options);
    for n in 0..20 {
        put(&store, "a", &format!("{{\"n\":{n}}}")).unwrap();
    }
    let page = store
        .list(&agent_checkpoint::store::Query::default())
        .unwrap();
    assert!(page.keys().eq(&[key("a")]));
    assert!(page.foreign.is_empty());
    let history = store.states(&key("a")).unwrap();
    assert_eq!(history.len(), 4, "the present one and three");
    for (age, entry) in history.iter().enumerate() {
        let stored = store.load_revision(&key("a"), &entry.id).unwrap();
        assert_eq!(stored.document.text(), format!("{{\"n\":{}}}", 19 - age));
    }
}

#[cfg(unix)]
#[test]
fn a_checkpoint_that_comes_back_is_no_wider_open_than_it_was() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let narrow = |path: &Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path());
    let file = folder.path().join("a.json");
    let a = key("a");
    put(&store, "a", "{}").unwrap();
    narrow(&file);
    // Deleted, then recovered.
    store.delete(&a, &DeleteOptions::new()).unwrap();
    let recover = RecoverOptions::new(Recovery::Newest);
    store.recover(&a, &recover).unwrap();
    assert_eq!(mode(&file), 0o600, "recovered");
    // Deleted, then put again, as a restore does.
    store.delete(&a, &DeleteOptions::new()).unwrap();
    put(&store, "a", "{}").unwrap();
    assert_eq!(mode(&file), 0o600, "restored");
    // Taken over, the archive.
    let agents = folder.path().join("agents");
    let store = FileStore::open(&agents).with_layout(AgentCheckpoint::layout());
    fs::create_dir(&agents).unwrap();
    let old = agents.join("secondary_a.json");
    let text = r#"{"agent_id": "Secondary-A", "status": "IN_PROGRESS", "last_checkpoint": "2026-03-02T08:00:00Z"}"#;
    fs::write(&old, text).unwrap();
    narrow(&old);
    let later = time("2026-03-02T10:00:00Z");
    let by = TakeOver::new("Secondary-A", "s2", "it crashed");
    take_over(&store, &key("Secondary-A"), &by, later).unwrap();
    let archives: Vec<String> = tree(&agents)
        .into_iter()
        .filter(|name| name.contains("_crashed_"))
        .collect();
    assert_eq!(archives.len(), 1, "{archives:?}");
    assert_eq!(mode(&agents.join(&archives[0])), 0o600, "archived");
}
