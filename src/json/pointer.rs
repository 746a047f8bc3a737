//! JSON pointers (RFC 6901): `/steps/0/name`, with `~0` for `~` and `~1` for `/`.

use std::borrow::Cow;

/// Escapes a member name or an index as one token of a pointer: `a/b` becomes `a~1b`.
#[must_use]
pub fn escape(token: &str) -> Cow<'_, str> {
    if !token.contains(['~', '/']) {
        return Cow::Borrowed(token);
    }
    Cow::Owned(token.replace('~', "~0").replace('/', "~1"))
}

/// Appends the unescaped `token` to the pointer `prefix`.
///
/// ```
/// use agent_checkpoint::json::pointer;
/// assert_eq!(pointer::join("/files", "src/lib.rs"), "/files/src~1lib.rs");
/// ```
#[must_use]
pub fn join(prefix: &str, token: &str) -> String {
    let mut joined = String::with_capacity(prefix.len() + 1 + token.len());
    joined.push_str(prefix);
    push(&mut joined, token);
    joined
}

/// Splits a pointer into its unescaped tokens, from the root downwards; none for the root itself.
///
/// A text that is no pointer (see [`is_valid`]) is split as if it began with `/`.
pub fn split(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let tokens = pointer.strip_prefix('/').unwrap_or(pointer).split('/');
    let whole = usize::from(pointer.is_empty());
    tokens.skip(whole).map(unescape)
}

/// Whether the text is a JSON pointer: empty, or beginning with `/`, and `~` only as `~0` or `~1`.
#[must_use]
pub fn is_valid(pointer: &str) -> bool {
    let starts = pointer.is_empty() || pointer.starts_with('/');
    let mut tildes = pointer.split('~').skip(1);
    starts && tildes.all(|rest| rest.starts_with(['0', '1']))
}

/// The index that a token names, if it names one: digits without leading zeros.
pub(super) fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|b| b.is_ascii_digit());
    let canonical = token == "0" || !token.starts_with('0');
    if digits && canonical {
        token.parse().ok()
    } else {
        None
    }
}

/// Appends one token, escaping it.
pub(super) fn push(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&escape(token));
}

/// The pointer of the parent and the unescaped last token; none for the root.
pub(super) fn parent(pointer: &str) -> Option<(&str, Cow<'_, str>)> {
    let (parent, last) = pointer.rsplit_once('/')?;
    Some((parent, unescape(last)))
}

fn unescape(token: &str) -> Cow<'_, str> {
    if !token.contains('~') {
        return Cow::Borrowed(token);
    }
    // `~1` first, so that `~01` becomes `~1` and not `/`.
    Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_escaping() {
        for token in ["", "a", "a/b", "~", "~1", "~01", "m~n/~0"] {
            let pointer = join("/x", token);
            assert!(is_valid(&pointer));
            assert_eq!(split(&pointer).collect::<Vec<_>>(), ["x", token]);
            assert_eq!(parent(&pointer), Some(("/x", Cow::Borrowed(token))));
        }
    }

    #[test]
    fn the_root_has_no_tokens() {
        assert_eq!(split("").count(), 0);
        assert_eq!(split("/").collect::<Vec<_>>(), [""]);
        assert_eq!(parent(""), None);
    }

    #[test]
    fn what_is_no_pointer() {
        assert!(!is_valid("a"));
        assert!(!is_valid("/~"));
        assert!(!is_valid("/~2"));
        assert!(is_valid("/~0~1"));
    }

    #[test]
    fn indexes_have_one_spelling() {
        assert_eq!(index("0"), Some(0));
        assert_eq!(index("10"), Some(10));
        for token in ["", "01", "-", "+1", "1a", "99999999999999999999999"] {
            assert_eq!(index(token), None, "{token}");
        }
    }
}
