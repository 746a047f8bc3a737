//! Finds secrets by their own form.

use std::sync::LazyLock;

use super::text::{Secret, Text, run};

/// Prefixes, the bytes that may follow, their least number, and the kind.
type Shape = (&'static [&'static str], fn(u8) -> bool, usize, &'static str);

/// The families with a fixed prefix that developers meet, from the lists of secret scanners. Of two prefixes with the
/// same beginning the longer one comes first.
const SHAPES: &[Shape] = &[
    // Language models and their tools.
    (&["sk-ant-"], is_word_or_dash, 20, "anthropic-key"),
    (&["sk-or-v1-"], is_alphanumeric, 32, "openrouter-key"),
    (&["sk-lf-"], is_word_or_dash, 32, "langfuse-key"),
    (&["lsv2_pt_", "lsv2_sk_"], is_word, 32, "langsmith-key"),
    (&["AIza"], is_word_or_dash, 35, "google-key"),
    (&["AQ.Ab"], is_word_or_dash, 32, "google-key"),
    (&["ya29.c.", "ya29."], is_word_or_dash, 20, "google-token"),
    (&["1//0"], is_word_or_dash, 40, "google-token"),
    (&["GOCSPX-"], is_word_or_dash, 24, "google-client-secret"),
    (&["xai-"], is_alphanumeric, 40, "xai-key"),
    (&["gsk_"], is_alphanumeric, 40, "groq-key"),
    (&["csk-"], is_alphanumeric, 40, "cerebras-key"),
    (&["pplx-"], is_alphanumeric, 40, "perplexity-key"),
    (&["nvapi-"], is_word_or_dash, 40, "nvidia-key"),
    (&["tvly-"], is_word_or_dash, 20, "tavily-key"),
    (&["fw_"], is_alphanumeric, 22, "fireworks-key"),
    (&["tgp_v1_"], is_word_or_dash, 40, "together-key"),
    (&["jina_"], is_alphanumeric, 40, "jina-key"),
    (&["pcsk_"], is_word, 40, "pinecone-key"),
    (
        &["hf_", "api_org_"],
        is_alphanumeric,
        30,
        "hugging-face-token",
    ),
    (&["r8_"], is_alphanumeric, 32, "replicate-token"),
    // Code hosts and package registries.
    (
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        is_alphanumeric,
        36,
        GITHUB,
    ),
    (&["github_pat_"], is_word, 22, GITHUB),
    (
        &[
            "glpat-",
            "gldt-",
            "glrt-",
            "glptt-",
            "glcbt-",
            "glft-",
            "glimt-",
            "glagent-",
            "gloas-",
            "glsoat-",
            "glffct-",
            "GR1348941",
        ],
        is_word_or_dash,
        20,
        "gitlab-token",
    ),
    (&["ATATT3", "ATCTT3"], is_base64, 60, "atlassian-token"),
    (&["ATBB"], is_alphanumeric, 32, "bitbucket-token"),
    (&["sgp_"], is_word, 40, "sourcegraph-token"),
    (&["npm_"], is_alphanumeric, 36, "npm-token"),
    (&["pypi-"], is_word_or_dash, 50, "pypi-token"),
    (&["cio"], is_alphanumeric, 32, "crates-io-token"),
    (&["rubygems_"], is_hex, 48, "rubygems-token"),
    (
        &["dckr_pat_", "dckr_oat_"],
        is_word_or_dash,
        20,
        "docker-token",
    ),
    (&["CCIPAT_", "CCIPRJ_"], is_word, 40, "circleci-token"),
    (&["bkua_"], is_hex, 40, "buildkite-token"),
    // Clouds and hosting.
    (
        &["ABSK", "bedrock-api-key-"],
        is_base64,
        40,
        "aws-bedrock-key",
    ),
    (&["LTAI"], is_alphanumeric, 20, "alibaba-access-key"),
    (
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        is_alphanumeric,
        40,
        "digitalocean-token",
    ),
    (
        &["hvs.", "hvb.", "hvr."],
        is_word_or_dash,
        24,
        "vault-token",
    ),
    (
        &["dp.pt.", "dp.ct.", "dp.sa."],
        is_alphanumeric,
        40,
        "doppler-token",
    ),
    (&["pul-"], is_hex, 40, "pulumi-token"),
    (&["dapi"], is_hex, 32, "databricks-token"),
    (&["HRKU-"], is_word_or_dash, 36, "heroku-key"),
    (&["vcp_", "vck_"], is_alphanumeric, 24, "vercel-token"),
    (&["nfp_"], is_alphanumeric, 36, "netlify-token"),
    (&["fo1_"], is_word_or_dash, 40, "fly-token"),
    (&["fm2_", "fm1r_", "fm1a_"], is_base64, 100, "fly-token"),
    (&["sbp_"], is_hex, 40, "supabase-token"),
    (&["sb_secret_"], is_word_or_dash, 20, "supabase-token"),
    (
        &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"],
        is_word_or_dash,
        32,
        "planetscale-token",
    ),
    (&["tskey-"], is_word_or_dash, 20, "tailscale-key"),
    (&["glsa_"], is_word, 40, "grafana-token"),
    (&["glc_"], is_base64, 32, "grafana-token"),
    (&["NRAK-"], is_alphanumeric, 27, "newrelic-key"),
    (&["sntryu_"], is_hex, 64, "sentry-token"),
    (&["sntrys_"], is_base64, 60, "sentry-token"),
    (&["phx_"], is_alphanumeric, 32, "posthog-key"),
    // Other services.
    (
        &[
            "xoxb-",
            "xoxp-",
            "xoxa-",
            "xoxr-",
            "xoxs-",
            "xoxe-",
            "xoxo-",
            "xoxd-",
            "xoxc-",
            "xapp-",
            "xoxe.xoxb-",
            "xoxe.xoxp-",
        ],
        is_word_or_dash,
        10,
        "slack-token",
    ),
    (
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        is_hex,
        32,
        "shopify-token",
    ),
    (
        &[
            "sk_live_", "rk_live_", "sk_test_", "rk_test_", "sk_prod_", "rk_prod_",
        ],
        is_alphanumeric,
        20,
        "stripe-key",
    ),
    (&["whsec_"], is_base64, 24, "webhook-secret"),
    (&["sq0atp-", "sq0csp-"], is_word_or_dash, 22, "square-token"),
    (&["xkeysib-"], is_word_or_dash, 64, "brevo-key"),
    (&["ntn_"], is_alphanumeric, 40, "notion-token"),
    (&["secret_"], is_alphanumeric, 43, "notion-token"),
    (
        &["lin_api_", "lin_oauth_"],
        is_alphanumeric,
        40,
        "linear-key",
    ),
    (&["figd_"], is_word_or_dash, 40, "figma-token"),
    (&["PMAK-"], is_word_or_dash, 50, "postman-key"),
    (&["ops_eyJ"], is_base64, 100, "1password-token"),
    (&["AGE-SECRET-KEY-1"], is_alphanumeric, 50, "age-key"),
];

/// For each byte the shapes with a prefix that begins with it, in the order of the table.
static BY_FIRST_BYTE: LazyLock<[Vec<&Shape>; 128]> = LazyLock::new(|| {
    std::array::from_fn(|byte| {
        let begins_so = |prefix: &&str| usize::from(prefix.as_bytes()[0]) == byte;
        let shapes = SHAPES.iter();
        shapes.filter(|it| it.0.iter().any(begins_so)).collect()
    })
});

/// The length of the shortest token.
const SHORTEST: usize = 15;

const GITHUB: &str = "github-token";

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_word_or_dash(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn is_base64(byte: u8) -> bool {
    is_word_or_dash(byte) || b"+/=".contains(&byte)
}

/// The secret that begins here.
pub(super) fn at_start(text: &mut Text<'_>) -> Option<Secret> {
    let rest = text.rest();
    // Most words end before the shortest token would.
    let shortest = rest.as_bytes().get(..SHORTEST)?;
    if !shortest.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let begin_so = BY_FIRST_BYTE.get(usize::from(shortest[0]))?;
    for (prefixes, is, least, kind) in begin_so {
        let after = |prefix: &&str| Some((prefix.len(), rest.strip_prefix(*prefix)?));
        let Some((prefix, rest)) = prefixes.iter().find_map(after) else {
            continue;
        };
        let Some(token) = rest.as_bytes().get(..*least) else {
            continue;
        };
        // Plain words joined by dashes are no token, and are not read to their end.
        let is_one = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
        if token.iter().all(|byte| is(*byte)) && token.iter().any(is_one) {
            return Some(Secret::new(prefix + run(rest, is), kind));
        }
    }
    aws(rest)
        .or_else(|| openai(text))
        .or_else(|| jwt(text))
        .or_else(|| in_parts(rest))
        .or_else(|| azure(rest))
        .or_else(|| telegram(rest))
        .or_else(|| prefixed(text))
}

/// Exactly sixteen capitals and digits after one of the prefixes.
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

/// Keys can begin like words (`sk-learn`), so they must contain digits, and capitals unless they are one long word.
fn openai(text: &mut Text<'_>) -> Option<Secret> {
    if text.at < text.tried.openai {
        return None;
    }
    let rest = text.rest().strip_prefix("sk-")?;
    let length = run(rest, is_word_or_dash);
    text.tried.openai = text.at + 3 + length;
    let key = rest.get(..length)?;
    let has = |is: fn(&u8) -> bool| key.bytes().any(|byte| is(&byte));
    let has_capital = has(u8::is_ascii_uppercase);
    let is_one_word = length >= 32 && has(u8::is_ascii_alphabetic) && !key.contains(['-', '_']);
    let is_key = length >= 20 && has(u8::is_ascii_digit) && (has_capital || is_one_word);
    // Other providers have keys of one word.
    let kind = if has_capital { "openai-key" } else { "api-key" };
    is_key.then(|| Secret::new(3 + length, kind))
}

/// A JSON web token: header, claims and signature.
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

/// Parts joined by dots: for each its beginning, its least and its greatest length.
type Parts = (&'static [(&'static str, usize, usize)], &'static str);

/// Tokens of several parts.
const PARTS: &[Parts] = &[
    (&[("SG", 2, 2), ("", 16, 64), ("", 32, 128)], "sendgrid-key"),
    (&[("pat", 17, 17), ("", 64, 64)], "airtable-token"),
    (
        &[("", 14, 14), ("atlasv1", 7, 7), ("", 60, 128)],
        "terraform-token",
    ),
    (&[("M", 23, 28), ("", 6, 7), ("", 27, 64)], DISCORD),
    (&[("N", 23, 28), ("", 6, 7), ("", 27, 64)], DISCORD),
    (&[("O", 23, 28), ("", 6, 7), ("", 27, 64)], DISCORD),
    (
        &[("dt0c01", 6, 6), ("", 24, 24), ("", 64, 64)],
        "dynatrace-token",
    ),
];

const DISCORD: &str = "discord-token";

fn in_parts(text: &str) -> Option<Secret> {
    let length_of = |parts: &[(&str, usize, usize)]| {
        let mut length = 0;
        for (number, (begin, least, most)) in parts.iter().enumerate() {
            let dot = usize::from(number > 0);
            let rest = text.get(length..)?;
            let rest = if number > 0 {
                rest.strip_prefix('.')?
            } else {
                rest
            };
            let bytes = rest.bytes().take(most + 1);
            let part = bytes.take_while(|byte| is_word_or_dash(*byte)).count();
            if !rest.starts_with(begin) || part < *least || part > *most {
                return None;
            }
            length += dot + part;
        }
        let token = text.get(..length)?;
        token
            .bytes()
            .any(|byte| byte.is_ascii_digit())
            .then_some(length)
    };
    PARTS
        .iter()
        .find_map(|(parts, kind)| Some(Secret::new(length_of(parts)?, kind)))
}

/// A client secret of Microsoft Entra: three letters, a digit, `Q~`, and the rest.
fn azure(text: &str) -> Option<Secret> {
    let (head, rest) = text.split_at_checked(6)?;
    if !head.ends_with("Q~") || !head.as_bytes().get(3)?.is_ascii_digit() {
        return None;
    }
    let length = run(rest, |byte| is_word_or_dash(byte) || b"~.".contains(&byte));
    (length >= 31).then(|| Secret::new(6 + length, "azure-client-secret"))
}

/// The token of a Telegram bot: its number, a colon, and 35 letters.
fn telegram(text: &str) -> Option<Secret> {
    let digits = text.bytes().take(17).take_while(u8::is_ascii_digit).count();
    let rest = text.get(digits..)?.strip_prefix(":A")?;
    let length = run(rest, is_word_or_dash);
    let is_one = (8..=16).contains(&digits) && length == 34;
    is_one.then(|| Secret::new(digits + 2 + length, "telegram-token"))
}

/// The least number of letters and digits of a token of unknown kind. Ids of language models and payments (`msg_…`,
/// `chatcmpl-…`, `pi_…`) have fewer.
const LEAST_RANDOM: usize = 32;

/// The least number after a word for secrets.
const LEAST_SECRET: usize = 20;

/// Words for secrets.
const SECRET_WORDS: [&str; 9] = [
    "api", "auth", "key", "live", "pat", "pwd", "secret", "sk", "token",
];

/// A long random token after a prefix, such as `acme_live_…`; the prefix stays.
///
/// Hashes lack capitals or small letters; names in camel case change between them less often.
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
    // A shorter token has fewer numbers in it.
    let (least, numbers) = match SECRET_WORDS.contains(&prefix.as_str()) {
        true => (LEAST_SECRET, 2),
        false => (LEAST_RANDOM, 3),
    };
    let is_secret = length >= least && is_random(rest.as_bytes().get(..length)?, numbers);
    is_secret.then(|| Secret::new(length, "token"))
}

/// Whether capitals, small letters and at least `least_numbers` numbers alternate as in a random text.
fn is_random(token: &[u8], least_numbers: usize) -> bool {
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
    has(1) && has(2) && numbers >= least_numbers && changes * 2 >= token.len()
}

/// A block with a private key, from its first line to its last, or to the end of a text that was cut.
pub(super) fn private_key(text: &str) -> Option<Secret> {
    const ENDS: [&str; 2] = ["PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"];
    let rest = text.strip_prefix("-----BEGIN ")?;
    let head = rest.find("-----")? + 5;
    let first = rest.get(..head)?;
    let end_line = ENDS.into_iter().find(|end| first.ends_with(end))?;
    let body = rest.get(head..)?;
    let length = match body.find(end_line) {
        Some(end) => end + end_line.len(),
        None => body.len(),
    };
    Some(Secret::new(11 + head + length, "private-key"))
}

#[cfg(test)]
mod tests {
    use super::super::secrets::redacted;
    use super::*;

    /// Tests each prefix with its least number of letters, and with one fewer.
    #[test]
    fn each_prefix_of_the_table_has_a_least_length() {
        let letters = "0123456789abcdef".repeat(8);
        for (prefixes, _, least, kind) in SHAPES {
            for prefix in *prefixes {
                let mark = format!("[redacted: {kind}]");
                let token = format!("{prefix}{}", &letters[..*least]);
                assert_eq!(redacted(&token), Some(mark.clone()), "{token}");
                let short = format!("{prefix}{}", &letters[..*least - 1]);
                let shown = redacted(&short).unwrap_or(short);
                assert!(!shown.contains(&mark), "{shown}");
                let words = "these-are-words-".repeat(8);
                assert_eq!(redacted(&format!("{prefix}{words}")), None, "{prefix}");
            }
        }
    }
}
