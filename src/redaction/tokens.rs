//! Secrets that are told by how they look.

use super::secrets::{Secret, Text, run};

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
    ("pypi-", is_word_or_dash, 50, "pypi-token"),
    ("xai-", is_alphanumeric, 40, "xai-key"),
    ("gsk_", is_alphanumeric, 40, "groq-key"),
    ("r8_", is_alphanumeric, 32, "replicate-token"),
    ("dop_v1_", is_alphanumeric, 40, DIGITAL_OCEAN),
    ("doo_v1_", is_alphanumeric, 40, DIGITAL_OCEAN),
    ("dor_v1_", is_alphanumeric, 40, DIGITAL_OCEAN),
    ("hvs.", is_word_or_dash, 24, VAULT),
    ("hvb.", is_word_or_dash, 24, VAULT),
    ("hvr.", is_word_or_dash, 24, VAULT),
];

const GITHUB: &str = "github-token";
const GITLAB: &str = "gitlab-token";
const SLACK: &str = "slack-token";
const STRIPE: &str = "stripe-key";
const DIGITAL_OCEAN: &str = "digitalocean-token";
const VAULT: &str = "vault-token";

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_word_or_dash(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

/// The secret that begins here.
pub(super) fn at_start(text: &mut Text<'_>) -> Option<Secret> {
    let rest = text.rest();
    let first = rest.as_bytes().first();
    let shapes = SHAPES
        .iter()
        .filter(|shape| shape.0.as_bytes().first() == first);
    for (prefix, is, least, kind) in shapes {
        if let Some(rest) = rest.strip_prefix(prefix) {
            let length = run(rest, is);
            if length >= *least {
                return Some(Secret::new(prefix.len() + length, kind));
            }
        }
    }
    aws(rest)
        .or_else(|| openai(text))
        .or_else(|| jwt(text))
        .or_else(|| sendgrid(rest))
        .or_else(|| prefixed(text))
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
fn openai(text: &mut Text<'_>) -> Option<Secret> {
    if text.at < text.tried.openai {
        return None;
    }
    let rest = text.rest().strip_prefix("sk-")?;
    let length = run(rest, is_word_or_dash);
    text.tried.openai = text.at + 3 + length;
    let key = rest.get(..length)?;
    let has = |is: fn(&u8) -> bool| key.bytes().any(|byte| is(&byte));
    let is_key = length >= 20 && has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase);
    is_key.then(|| Secret::new(3 + length, "openai-key"))
}

/// Header, claims and signature.
fn jwt(text: &mut Text<'_>) -> Option<Secret> {
    let rest = text.rest();
    if text.at < text.tried.jwt || !rest.starts_with("eyJ") {
        return None;
    }
    let header = run(rest, is_word_or_dash);
    text.tried.jwt = text.at + header;
    let rest = rest.get(header..)?.strip_prefix('.')?;
    if !rest.starts_with("eyJ") {
        return None;
    }
    let claims = run(rest, is_word_or_dash);
    let signature = rest.get(claims..)?.strip_prefix('.')?;
    let signed = run(signature, is_word_or_dash);
    (header >= 10 && claims >= 10 && signed >= 10)
        .then(|| Secret::new(header + 1 + claims + 1 + signed, "jwt"))
}

/// Two parts after `SG.`.
fn sendgrid(text: &str) -> Option<Secret> {
    let rest = text.strip_prefix("SG.")?;
    let id = run(rest, is_word_or_dash);
    let key = rest.get(id..)?.strip_prefix('.')?;
    let length = run(key, is_word_or_dash);
    (id >= 16 && length >= 32).then(|| Secret::new(3 + id + 1 + length, "sendgrid-key"))
}

/// How many letters and digits a token of no known kind has at least. Ids of language models and payments
/// (`msg_…`, `chatcmpl-…`, `pi_…`) have fewer.
const LEAST_RANDOM: usize = 32;

/// A long random token behind a prefix, such as `acme_live_…`, of which the prefix stays.
///
/// Hashes have no capitals or no small letters; names in camel case change less often.
fn prefixed(text: &Text<'_>) -> Option<Secret> {
    let before = text.before().strip_suffix(['_', '-'])?;
    let letters = before.bytes().rev().take(16);
    let length = letters.take_while(|byte| is_alphanumeric(*byte)).count();
    let prefix = before.get(before.len() - length..)?.to_ascii_lowercase();
    let is_prefix = prefix.bytes().any(|byte| byte.is_ascii_lowercase())
        && !prefix.starts_with("sha")
        && !["md5", "test"].contains(&prefix.as_str());
    if !is_prefix {
        return None;
    }
    let rest = text.rest();
    let length = run(rest, is_alphanumeric);
    let is_random = length >= LEAST_RANDOM && is_random(rest.as_bytes().get(..length)?);
    is_random.then(|| Secret::new(length, "token"))
}

/// Whether capitals, small letters and digits follow each other as only chance has it.
fn is_random(token: &[u8]) -> bool {
    let class = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let has = |wanted| token.iter().any(|byte| class(*byte) == wanted);
    let pairs = || {
        token
            .windows(2)
            .map(|pair| (class(pair[0]), class(pair[1])))
    };
    let changes = pairs().filter(|(one, next)| one != next).count();
    let numbers = pairs()
        .filter(|(one, next)| *one != 0 && *next == 0)
        .count();
    has(1) && has(2) && numbers >= 3 && changes * 2 >= token.len()
}

/// From the first line of the block to its last, or to the end of a text that was cut.
pub(super) fn private_key(text: &str) -> Option<Secret> {
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
