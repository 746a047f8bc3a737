//! Finds secrets by the name before them.

use super::text::{Secret, Text, run};

/// The secret after a name or word that begins here.
pub(super) fn at_start(text: &mut Text<'_>) -> Option<Secret> {
    credentials(text.rest())
        .or_else(|| webhook(text.rest()))
        .or_else(|| url(text))
        .or_else(|| assigned(text))
}

/// `Bearer …` and `Basic …`.
fn credentials(text: &str) -> Option<Secret> {
    if !text.starts_with(['B', 'b']) {
        return None;
    }
    let word = run(text, |byte| byte.is_ascii_alphabetic());
    let scheme = text.get(..word)?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    if !is_bearer && !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let keep = word + run(text.get(word..)?, |byte| byte == b' ');
    if keep == word {
        return None;
    }
    let rest = text.get(keep..)?;
    let length = run(rest, |byte| {
        byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte)
    });
    let value = rest.get(..length)?;
    let kind = if is_bearer {
        let is_one = length >= 20 && value.bytes().any(|byte| byte.is_ascii_digit());
        is_one.then_some("bearer-token")?
    } else {
        is_name_and_password(value).then_some("basic-auth")?
    };
    Some(Secret { keep, length, kind })
}

/// Whether the value is the Base64 form of a name and a password with a colon between them.
fn is_name_and_password(value: &str) -> bool {
    let mut bits = 0_u32;
    let mut held = 0_u32;
    let mut has_colon = false;
    for byte in value.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return false,
        };
        held = (held << 6) | u32::from(six);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            let decoded = (held >> bits) & 0xff;
            held &= (1 << bits) - 1;
            if !(0x20..0x7f).contains(&decoded) {
                return false;
            }
            has_colon |= decoded == u32::from(b':');
        }
    }
    has_colon
}

/// `scheme://user:password@host`.
fn url(text: &mut Text<'_>) -> Option<Secret> {
    let at = text.at;
    if at < text.tried.url {
        return None;
    }
    let scheme = run(text.rest(), |byte| {
        byte.is_ascii_alphanumeric() || b"+.-".contains(&byte)
    });
    text.tried.url = at + scheme;
    let rest = text.rest().get(scheme..)?.strip_prefix("://")?;
    let authority = run(rest, |byte| {
        byte.is_ascii_graphic() && !b"/?#\"'<>".contains(&byte)
    });
    let at = rest.get(..authority)?.rfind('@')?;
    let colon = rest.get(..at)?.find(':')?;
    let password = rest.get(colon + 1..at)?;
    (scheme > 0 && !password.is_empty() && !is_placeholder(password)).then_some(Secret {
        keep: scheme + 3 + colon + 1,
        length: password.len(),
        kind: "url-password",
    })
}

/// URLs of webhooks, whose path alone gives the right to post.
const WEBHOOKS: [&str; 6] = [
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "webhook.office.com/webhookb2/",
];

fn webhook(text: &str) -> Option<Secret> {
    let address = WEBHOOKS
        .iter()
        .find(|address| text.starts_with(**address))?;
    let path = text.get(address.len()..)?;
    let length = run(path, |byte| {
        byte.is_ascii_alphanumeric() || b"/_+@%-".contains(&byte)
    });
    (length >= 30).then_some(Secret {
        keep: address.len(),
        length,
        kind: "webhook",
    })
}

/// `password=…`, `"api_key": "…"`.
fn assigned(text: &mut Text<'_>) -> Option<Secret> {
    if text.at < text.tried.assigned {
        return None;
    }
    let rest = text.rest();
    let name = run(rest, |byte| {
        byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
    });
    text.tried.assigned = text.at + name;
    let mut at = name;
    at += run(rest.get(at..)?, |byte| b"\"'".contains(&byte)).min(1);
    at += run(rest.get(at..)?, |byte| byte == b' ');
    // Most words are not followed by `=` or `:`, so this check comes first.
    let sign = rest.as_bytes().get(at).copied();
    let sign = sign.filter(|sign| b"=:".contains(sign))?;
    let name_text = rest.get(..name)?;
    let is_password = is_secret_name(name_text)?;
    if sign == b':' && is_signature(name_text) {
        return None;
    }
    at += 1;
    at += run(rest.get(at..)?, |byte| byte == b' ');
    let value = rest.get(at..)?;
    let quote = value.chars().next().filter(|first| "\"'".contains(*first));
    let (value, has_digit, is_placeholder) = match quote {
        Some(quote) => {
            at += 1;
            let value = value.get(1..)?;
            let value = value.get(..value.find(quote)?)?;
            let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
            (value, has_digit, is_placeholder(value))
        }
        None => {
            let start = text.at + at;
            let bare = text.bare_value(start);
            let value = value.get(..bare.end - start)?;
            let has_digit = bare.last_digit.is_some_and(|digit| digit >= start);
            let has_bracket = bare.last_bracket.is_some_and(|bracket| bracket >= start);
            (
                value,
                has_digit,
                has_bracket || begins_as_placeholder(value) || is_code(name_text, value),
            )
        }
    };
    let is_secret = if is_password && (sign == b'=' || quote.is_some()) {
        value.len() >= 3
    } else {
        // Prose also has colons, and code has assignments.
        value.len() >= 8 && has_digit
    };
    (is_secret && !is_placeholder).then_some(Secret {
        keep: at,
        length: value.len(),
        kind: if is_password { "password" } else { "secret" },
    })
}

/// Whether a value of this name is a secret; `Some(true)` if it is a password.
fn is_secret_name(name: &str) -> Option<bool> {
    let plain: String = name
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric())
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    let ends = |ends: &[&str]| ends.iter().any(|end| plain.ends_with(end));
    if ends(&["password", "passwd", "passphrase", "pwd"]) {
        return Some(true);
    }
    let others = [
        "secret",
        "token",
        "apikey",
        "secretkey",
        "accesskey",
        "accountkey",
        "amzsignature",
        "privatekey",
        "authkey",
    ];
    (ends(&others) || is_signature(name)).then_some(false)
}

/// Whether this is the name of the signature in a link that anyone can open. Before a colon it means something else.
fn is_signature(name: &str) -> bool {
    name.eq_ignore_ascii_case("sig")
}

/// Whether an unquoted value is a keyword of a programming language, or the name itself: code passes passwords on
/// (`password=self.password`).
fn is_code(name: &str, value: &str) -> bool {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_lowercase();
    let (name, value) = (last(name), last(value));
    let begins = name.strip_suffix(&value);
    ["none", "null", "nil", "undefined", "true", "false"].contains(&&*value)
        || begins.is_some_and(|begins| begins.is_empty() || begins.ends_with('_'))
}

/// Whether the value refers to a secret elsewhere, or was redacted before.
fn is_placeholder(value: &str) -> bool {
    begins_as_placeholder(value) || value.contains(['(', '<'])
}

/// Whether the beginning of the value shows that it is a placeholder.
fn begins_as_placeholder(value: &str) -> bool {
    let first = value.chars().next().unwrap_or('$');
    // Includes paths: of a file with the secret, or the current folder (`PWD=/srv/app`).
    "$<{[%(*/~".contains(first)
        || value
            .bytes()
            .all(|byte| byte == b'*' || byte == b'x' || byte == b'.')
}
