//! The mapping between keys and file names.

use super::{Error, ErrorKind, Key, Result};

/// The extension of every checkpoint file.
pub(super) const EXTENSION: &str = ".json";

/// The longest name that every common file system accepts, minus room for the names of files beside it.
const MAX_NAME: usize = 230;

/// The file name of a key. It has no separator, does not begin with a dot, and is not a device name of Windows,
/// so it always names a file directly in its folder.
///
/// ASCII letters, digits and a few punctuation marks stay as they are; every other byte becomes `%XX`.
/// Non-ASCII text is encoded too, because file systems disagree about its spelling.
pub(super) fn file_name(key: &Key) -> Result<String> {
    let text = key.as_str();
    let mut name = String::with_capacity(text.len() + EXTENSION.len());
    let device = is_device_name(text);
    for (at, byte) in text.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'-' | b'_' | b' ' | b'@' | b'+' | b',' | b'=' | b'(' | b')'
            )
            || (byte == b'.' && at > 0);
        if plain && !(device && at == 0) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name.push_str(EXTENSION);
    if name.len() > MAX_NAME {
        return Err(Error::new(ErrorKind::InvalidKey {
            text: text.to_owned(),
            reason: "it makes a file name of more than 230 bytes",
        }));
    }
    Ok(name)
}

/// The key whose file has this name, or `None` if there is no such key.
pub(super) fn key_of(name: &str) -> Option<Key> {
    let stem = name.strip_suffix(EXTENSION)?;
    let mut bytes = Vec::with_capacity(stem.len());
    let mut rest = stem.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let hex = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    let key = Key::new(String::from_utf8(bytes).ok()?).ok()?;
    // Only the spelling that `file_name` produces is accepted: two files must not have the same key.
    (file_name(&key).ok()? == name).then_some(key)
}

/// Whether Windows reserves this name for a device, with any extension.
fn is_device_name(text: &str) -> bool {
    let stem = text.split('.').next().unwrap_or(text).trim_end();
    let lower = stem.to_ascii_lowercase();
    matches!(
        lower.as_str(),
        "con" | "prn" | "aux" | "nul" | "conin$" | "conout$"
    ) || (lower.len() == 4
        && (lower.starts_with("com") || lower.starts_with("lpt"))
        && lower.ends_with(|last: char| last.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_ids_keep_their_spelling() {
        for (key, name) in [
            ("US-003", "US-003.json"),
            ("task 1.2", "task 1.2.json"),
            ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd.json"),
            (".hidden", "%2Ehidden.json"),
            ("a:b\\c", "a%3Ab%5Cc.json"),
            ("nul", "%6Eul.json"),
            ("COM1.x", "%43OM1.x.json"),
            ("ä", "%C3%A4.json"),
            ("100%", "100%25.json"),
        ] {
            assert_eq!(file_name(&Key::new(key).unwrap()).unwrap(), name);
        }
    }

    #[test]
    fn only_the_one_spelling_is_a_key() {
        for name in [
            "%41.json",
            "a%2fb.json",
            "x.txt",
            ".json",
            "%.json",
            "ä.json",
        ] {
            assert_eq!(key_of(name), None, "{name}");
        }
    }

    #[test]
    fn too_long_a_name_is_refused() {
        let key = Key::new("/".repeat(100)).unwrap();
        assert!(file_name(&key).is_err());
    }

    proptest! {
        #[test]
        fn a_name_leads_back_to_its_key_and_stays_in_its_folder(text in "\\PC{1,60}") {
            let Ok(key) = Key::new(text) else { return Ok(()) };
            let Ok(name) = file_name(&key) else { return Ok(()) };
            prop_assert!(!name.contains(['/', '\\', ':', '\0']) && !name.starts_with('.'));
            prop_assert_eq!(key_of(&name), Some(key));
        }
    }
}
