//! What has the shape of a secret.

use super::{assignments, tokens};

/// A secret in a text.
pub(super) struct Secret {
    /// How many bytes stay before it, such as `password=`.
    pub(super) keep: usize,
    /// How many bytes it has.
    pub(super) length: usize,
    /// What it is, for the mark.
    pub(super) kind: &'static str,
}

impl Secret {
    /// A secret that begins where it was looked for.
    pub(super) fn new(length: usize, kind: &'static str) -> Self {
        Secret {
            keep: 0,
            length,
            kind,
        }
    }
}

/// The text without its secrets, or `None` when it has none.
pub(super) fn redacted(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    let mut before = None;
    while let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let begins = !before.is_some_and(is_of_word) || letter == '-';
        let rest = text.get(at..).unwrap_or_default();
        let found = begins
            .then(|| tokens::at_start(rest).or_else(|| assignments::at_start(rest)))
            .flatten();
        if let Some(secret) = found {
            let start = at + secret.keep;
            out.push_str(text.get(copied..start).unwrap_or_default());
            out.push_str("[redacted: ");
            out.push_str(secret.kind);
            out.push(']');
            copied = start + secret.length;
            at = copied;
            before = None;
        } else {
            before = Some(letter);
            at += letter.len_utf8();
        }
    }
    (copied > 0).then(|| {
        out.push_str(text.get(copied..).unwrap_or_default());
        out
    })
}

/// Letters that a token cannot begin after.
fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric()
}

/// How many bytes at the start are such.
pub(super) fn run(text: &str, is: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is(*byte)).count()
}

#[cfg(test)]
mod tests {
    use super::redacted;

    /// Put together here, so that no scanner takes the source for a leak.
    fn made(parts: &[&str]) -> String {
        parts.concat()
    }

    const ALNUM: &str = "0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ";

    #[test]
    fn each_shape_leaves_its_mark() {
        let long = &ALNUM[..40];
        let jwt = made(&[
            "ey",
            "JhbGciOiJIUzI1NiJ9",
            ".ey",
            "JzdWIiOiIxMjM0NTY3ODkwIn0",
            ".",
            long,
        ]);
        let key = made(&[
            "-----BEGIN RSA PRIV",
            "ATE KEY-----\nMIIE\n-----END RSA PRIV",
            "ATE KEY-----",
        ]);
        for (secret, mark) in [
            (made(&["AK", "IAIOSFODNN7EXAMPLE"]), "aws-access-key"),
            (made(&["gh", "p_", &ALNUM[..36]]), "github-token"),
            (made(&["github_", "pat_", long]), "github-token"),
            (made(&["gl", "pat-", &ALNUM[..20]]), "gitlab-token"),
            (made(&["xo", "xb-1234567890-", &ALNUM[..24]]), "slack-token"),
            (made(&["sk-", "ant-api03-", long]), "anthropic-key"),
            (made(&["sk-", "proj-", long]), "openai-key"),
            (made(&["sk-", long]), "openai-key"),
            (made(&["AI", "za", &ALNUM[..35]]), "google-key"),
            (made(&["sk_", "live_", &ALNUM[..24]]), "stripe-key"),
            (made(&["hf", "_", &ALNUM[..34]]), "hugging-face-token"),
            (made(&["npm", "_", &ALNUM[..36]]), "npm-token"),
            (jwt, "jwt"),
            (key, "private-key"),
        ] {
            assert_eq!(
                redacted(&format!("use ({secret}), then go on")).as_deref(),
                Some(format!("use ([redacted: {mark}]), then go on").as_str()),
                "{secret}"
            );
        }
    }

    #[test]
    fn what_names_a_secret_stays_and_the_secret_goes() {
        for (text, shown) in [
            (
                "password=hunter2 works",
                "password=[redacted: password] works",
            ),
            (
                "DB_PASSWORD: \"correct horse\"",
                "DB_PASSWORD: \"[redacted: password]\"",
            ),
            (
                "{\"api_key\": \"abc12345\"}",
                "{\"api_key\": \"[redacted: secret]\"}",
            ),
            (
                "export API_TOKEN=abcd1234efgh",
                "export API_TOKEN=[redacted: secret]",
            ),
            (
                "client-secret: 9f8e7d6c5b4a",
                "client-secret: [redacted: secret]",
            ),
            (
                "postgres://app:s3cr3t@db.local/x",
                "postgres://app:[redacted: url-password]@db.local/x",
            ),
            (
                "Server=db;User Id=app;Password=s3cr3t;",
                "Server=db;User Id=app;Password=[redacted: password];",
            ),
            (
                "Authorization: Bearer abcdef0123456789abcdef",
                "Authorization: Bearer [redacted: bearer-token]",
            ),
            (
                "authorization: basic YXBwOnMzY3JldA==",
                "authorization: basic [redacted: basic-auth]",
            ),
        ] {
            assert_eq!(redacted(text).as_deref(), Some(shown), "{text}");
            // Once is enough.
            assert_eq!(redacted(shown), None, "{shown}");
        }
    }

    #[test]
    fn hashes_ids_and_ordinary_words_stay() {
        for text in [
            "commit 3fa94c1f0e2d4b6a8c0e2d4b6a8c0e2d4b6a8c0e",
            "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "550e8400-e29b-41d4-a716-446655440000",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "eyJhbGciOiJIUzI1NiJ9 is a header",
            "task-runner-for-the-whole-system-1A",
            "sk-learn was installed",
            "Basic authentication is done",
            "Bearer authentication-middleware-added",
            "max_tokens=4096, tokens: 123456789",
            "password: ask the lead",
            "the token is $TOKEN, password=$DB_PASSWORD, password=<password>",
            "token = parser.next_token(1)",
            "password=get_password()",
            "password=\"\"",
            "https://example.com:8080/a@b",
            "git@github.com:a/b.git",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA",
            "AKIA is how they begin",
            "secret: the key idea",
            "ghp_short",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        ] {
            assert_eq!(redacted(text), None, "{text}");
        }
    }
}
