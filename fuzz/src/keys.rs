//! Whatever text is a key has a file in the folder and no other, and the file's name leads back to the key.

use std::path::{Component, Path};

use agent_checkpoint::Key;
use agent_checkpoint::formats::{FileRole, Layout};

/// Text to key to file name to key; and name to key to name.
pub(crate) fn keys(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let layout = Layout::default();
    if let Ok(key) = Key::new(text.as_ref()) {
        assert_eq!(key.as_str(), text);
        if let Ok(name) = (layout.file_name)(&key) {
            stays_in_its_folder(&name);
            match (layout.role)(&name) {
                FileRole::Current(Some(back)) => assert_eq!(back, key, "{name}"),
                other => panic!("{name} of {key:?} is {other:?}"),
            }
        }
    }
    for name in [text.to_string(), format!("{text}.json")] {
        if let FileRole::Current(Some(key)) = (layout.role)(&name) {
            let back = (layout.file_name)(&key).expect("it has one");
            assert_eq!(back, name, "two files of one key");
        }
    }
}

fn stays_in_its_folder(name: &str) {
    let mut parts = Path::new(name).components();
    assert!(
        matches!(parts.next(), Some(Component::Normal(part)) if part == name),
        "{name}"
    );
    assert_eq!(parts.next(), None, "{name}");
    assert!(
        !name.contains(['/', '\\', ':', '\0', '*', '?', '"', '<', '>', '|']),
        "{name}"
    );
    assert!(
        !name.starts_with('.') && name.len() <= 230 && name.is_ascii(),
        "{name}"
    );
}
