//! Secrets that are told by how they look.

use super::secrets::{Secret, run};

/// Prefix, the bytes that may follow, how many at least, and what it is.
type Shape = (&'static str, fn(u8) -> bool, usize, &'static str);

const SHAPES: &[Shape] = &[
    ("ghp_", is_alphanumeric, 36, GITHUB),
    ("gho_", is_alphanumeric, 36, GITHUB),
    ("ghu_", is_alphanumeric, 36, GITHUB),
    ("ghs_", is_alphanumeric, 36, GITHUB),
    ("ghr_", is_alphanumeric, 36, GITHUB),
    ("github_pat_", is_word, 22, GITHUB),
    ("glpat-", is_word_or_dash, 20, GITLAB),
    ("gldt-", is_word_or_dash, 20, GITLAB),
    ("glrt-", is_word_or_dash, 20, GITLAB),
    ("glptt-", is_word_or_dash, 20, GITLAB),
    ("glcbt-", is_word_or_dash, 20, GITLAB),
    ("xoxb-", is_word_or_dash, 10, SLACK),
    ("xoxp-", is_word_or_dash, 10, SLACK),
    ("xoxa-", is_word_or_dash, 10, SLACK),
    ("xoxr-", is_word_or_dash, 10, SLACK),
    ("xoxs-", is_word_or_dash, 10, SLACK),
    ("xoxe-", is_word_or_dash, 10, SLACK),
    ("xapp-", is_word_or_dash, 10, SLACK),
    ("sk-ant-", is_word_or_dash, 20, "anthropic-key"),
    ("AIza", is_word_or_dash, 35, "google-key"),
    ("sk_live_", is_alphanumeric, 20, STRIPE),
    ("rk_live_", is_alphanumeric, 20, STRIPE),
    ("sk_test_", is_alphanumeric, 20, STRIPE),
    ("hf_", is_alphanumeric, 30, "hugging-face-token"),
    ("npm_", is_alphanumeric, 36, "npm-token"),
];

const GITHUB: &str = "github-token";
const GITLAB: &str = "gitlab-token";
const SLACK: &str = "slack-token";
const STRIPE: &str = "stripe-key";

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_word_or_dash(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

/// The secret that the text begins with.
pub(super) fn at_start(text: &str) -> Option<Secret> {
    for (prefix, is, least, kind) in SHAPES {
        if let Some(rest) = text.strip_prefix(prefix) {
            let length = run(rest, is);
            if length >= *least {
                return Some(Secret::new(prefix.len() + length, kind));
            }
        }
    }
    aws(text)
        .or_else(|| openai(text))
        .or_else(|| jwt(text))
        .or_else(|| private_key(text))
}

/// Sixteen capitals and digits, no more, after one of the prefixes.
fn aws(text: &str) -> Option<Secret> {
    let prefixes = ["AKIA", "ASIA", "AROA", "AIDA", "ABIA", "ACCA"];
    let rest = prefixes
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))?;
    let capitals = run(rest, |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit()
    });
    let is_one = capitals == 16 && run(rest, is_word) == 16;
    is_one.then(|| Secret::new(20, "aws-access-key"))
}

/// Keys begin as words do (`sk-learn`), so digits and capitals must be in them.
fn openai(text: &str) -> Option<Secret> {
    let rest = text.strip_prefix("sk-")?;
    let length = run(rest, is_word_or_dash);
    let key = rest.get(..length)?;
    let has = |is: fn(&u8) -> bool| key.bytes().any(|byte| is(&byte));
    let is_key = length >= 20 && has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase);
    is_key.then(|| Secret::new(3 + length, "openai-key"))
}

/// Header, claims and signature.
fn jwt(text: &str) -> Option<Secret> {
    if !text.starts_with("eyJ") {
        return None;
    }
    let header = run(text, is_word_or_dash);
    let rest = text.get(header..)?.strip_prefix('.')?;
    if !rest.starts_with("eyJ") {
        return None;
    }
    let claims = run(rest, is_word_or_dash);
    let signature = rest.get(claims..)?.strip_prefix('.')?;
    let signed = run(signature, is_word_or_dash);
    (header >= 10 && claims >= 10 && signed >= 10)
        .then(|| Secret::new(header + 1 + claims + 1 + signed, "jwt"))
}

/// From the first line of the block to its last, or to the end of a text that was cut.
fn private_key(text: &str) -> Option<Secret> {
    const END: &str = "PRIVATE KEY-----";
    let rest = text.strip_prefix("-----BEGIN ")?;
    let head = rest.find("-----")? + 5;
    if !rest.get(..head)?.ends_with(END) {
        return None;
    }
    let body = rest.get(head..)?;
    let length = match body.find(END) {
        Some(end) => end + END.len(),
        None => body.len(),
    };
    Some(Secret::new(11 + head + length, "private-key"))
}
