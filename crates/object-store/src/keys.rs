//! How a key becomes the name of an object.

use agent_checkpoint::Key;

/// The name of a key. Letters, digits and `-` stand for themselves. Every other byte becomes a sign and two hexadecimal
/// digits. The sign sorts where the byte does, so names sort as their keys do, and a service can list the keys after a
/// given one. No name has a `/` or is `.` or `..`, and all services accept every byte of it.
pub(crate) fn name_of(text: &str) -> String {
    let mut name = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        match sign_of(byte) {
            None => name.push(char::from(byte)),
            Some(sign) => name.push_str(&format!("{}{byte:02X}", char::from(sign))),
        }
    }
    name
}

fn sign_of(byte: u8) -> Option<u8> {
    match byte {
        b'-' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => None,
        ..b'-' => Some(b'!'),
        b'.' | b'/' => Some(b'.'),
        b':'..=b'@' => Some(b'='),
        b'['..=b'`' => Some(b'_'),
        b'{'.. => Some(b'~'),
    }
}

/// The key of a name; `None` if no key has that name.
pub(crate) fn key_of(name: &str) -> Option<Key> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut left = name.bytes();
    while let Some(byte) = left.next() {
        match sign_of(byte) {
            None => bytes.push(byte),
            Some(_) => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let code = digit(left.next())? * 16 + digit(left.next())?;
                bytes.push(u8::try_from(code).ok()?);
            }
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    // A name in another spelling is not the object of the key.
    let is_it = name_of(&text) == name;
    Key::new(text).ok().filter(|_| is_it)
}

/// A text that sorts after every name below those with this beginning, and before all of these. It may not be a valid
/// name, so it is only for comparisons.
pub(crate) fn before(beginning: &str) -> Option<String> {
    let mut before = beginning.to_owned();
    let below = match before.pop()? {
        // Not `/`, which no name has and in which a path must not end.
        '0' => '.',
        last => char::from(u8::try_from(last).ok()? - 1),
    };
    before.push(below);
    before.push_str("~~");
    Some(before)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot go on should say where"
    )]

    use super::*;

    /// Every pair of bytes that can follow each other in a key, at least as single characters.
    fn keys() -> Vec<String> {
        let letters: Vec<char> = (' '..='~').chain(['é', 'ß', '€', '😀', '\u{a0}']).collect();
        let mut all = Vec::new();
        for one in &letters {
            all.push(one.to_string());
            all.extend(letters.iter().map(|two| format!("{one}{two}")));
        }
        all.retain(|text| Key::new(text.as_str()).is_ok());
        all.sort();
        all
    }

    #[test]
    fn names_are_safe_come_back_and_sort_as_their_keys_do() {
        let keys = keys();
        assert!(keys.len() > 9000, "{}", keys.len());
        let names: Vec<String> = keys.iter().map(|key| name_of(key)).collect();
        for (key, name) in keys.iter().zip(&names) {
            assert_eq!(key_of(name).unwrap().as_str(), key);
            let parsed = object_store::path::Path::parse(format!("a/{name}")).unwrap();
            assert_eq!(parsed.as_ref(), format!("a/{name}"));
        }
        assert!(names.is_sorted_by(|one, two| one < two));
        assert_eq!(name_of("US-003"), "US-003");
        assert_eq!(name_of("a/b_c.json"), "a.2Fb_5Fc.2Ejson");
    }

    #[test]
    fn a_name_that_no_key_has_is_none() {
        for name in ["", "a b", "a.2f", "a.2", "a~FF", "=41", "a_", "%2F", "ä"] {
            assert_eq!(key_of(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_before_a_beginning_parts_the_names() {
        let names: Vec<String> = keys().iter().map(|key| name_of(key)).collect();
        for beginning in ["a", "0", "-", "A", "z", "US-0", "a.2F", "~C3", "a0", ".2E"] {
            let before = before(beginning).unwrap();
            assert!(object_store::path::Path::parse(format!("a/{before}")).is_ok());
            for name in names.iter().chain([&beginning.to_owned()]) {
                let is_behind = name.as_str() >= beginning;
                assert_eq!(*name > before, is_behind, "{name} and {before}");
            }
        }
    }
}
