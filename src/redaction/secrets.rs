//! Finds secrets in a text by their shape.

use super::text::{Text, Tried, run};
use super::{assignments, tokens};

/// The text without its secrets, or `None` if it has none.
pub(super) fn redacted(whole: &str) -> Option<String> {
    redacted_from(whole, 0)
}

/// The same of the text from `from` on. Of a secret that reaches beyond this place, its mark is at the beginning.
pub(super) fn redacted_from(whole: &str, from: usize) -> Option<String> {
    let mut text = Text {
        whole,
        at: 0,
        tried: Tried::default(),
    };
    let mut out = String::new();
    let mut copied = from;
    let mut before = None;
    while let Some(letter) = text.rest().chars().next() {
        let found = if letter == '-' {
            tokens::private_key(text.rest())
        } else if letter.is_ascii_alphanumeric() && !before.is_some_and(is_of_word) {
            tokens::at_start(&mut text).or_else(|| assignments::at_start(&mut text))
        } else {
            None
        };
        if let Some(secret) = found {
            let start = text.at + secret.keep;
            text.at = start + secret.length;
            if text.at > from {
                out.push_str(whole.get(copied..start).unwrap_or_default());
                out.push_str("[redacted: ");
                out.push_str(secret.kind);
                out.push(']');
                copied = text.at;
            }
            before = None;
        } else {
            before = Some(letter);
            // A secret does not begin within a word.
            let word = run(text.rest(), |byte| byte.is_ascii_alphanumeric());
            text.at += word.max(letter.len_utf8());
        }
    }
    (copied > from).then(|| {
        out.push_str(whole.get(copied..).unwrap_or_default());
        out
    })
}

/// Whether no token can begin after this letter.
fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::redacted;

    /// Assembled here, so that no scanner reports this source as a leak.
    fn made(parts: &[&str]) -> String {
        parts.concat()
    }

    const ALNUM: &str = "0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ";

    const HEX: &str = "0123456789abcdef0123456789abcdef";

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
        let block = made(&[
            "-----BEGIN PGP PRIVATE",
            " KEY BLOCK-----\n",
            long,
            "\n-----END PGP PRIVATE KEY BLOCK-----",
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
            (made(&["py", "pi-AgEIcHlwaS5vcmc", long]), "pypi-token"),
            (made(&["x", "ai-", long, long]), "xai-key"),
            (made(&["g", "sk_", long, &ALNUM[..12]]), "groq-key"),
            (made(&["r", "8_", &ALNUM[..37]]), "replicate-token"),
            (
                made(&["S", "G.", &ALNUM[..22], ".", &ALNUM[..43]]),
                "sendgrid-key",
            ),
            (
                made(&["do", "p_v1_", &"0123456789abcdef".repeat(4)]),
                "digitalocean-token",
            ),
            (made(&["hv", "s.", long, long]), "vault-token"),
            (made(&["sk-", "or-v1-", HEX, HEX]), "openrouter-key"),
            (made(&["sk-", HEX]), "api-key"),
            (made(&["ya", "29.a0AfH6SMB", long]), "google-token"),
            (made(&["ya", "29.c.b0Aa", long]), "google-token"),
            (made(&["GOC", "SPX-", &ALNUM[..28]]), "google-client-secret"),
            (made(&["shp", "at_", HEX]), "shopify-token"),
            (
                made(&["ATA", "TT3xFfGF0", long, long, "=1A2B3C4D"]),
                "atlassian-token",
            ),
            (
                made(&["nva", "pi-", long, "_-", &ALNUM[..22]]),
                "nvidia-key",
            ),
            (made(&["tv", "ly-dev-", &ALNUM[..32]]), "tavily-key"),
            (made(&["dc", "kr_pat_", &ALNUM[..27]]), "docker-token"),
            (made(&["ci", "o", &ALNUM[..32]]), "crates-io-token"),
            (
                made(&["ts", "key-auth-k1", &ALNUM[..11], "-", &ALNUM[..32]]),
                "tailscale-key",
            ),
            (made(&["wh", "sec_", &ALNUM[..32]]), "webhook-secret"),
            (
                made(&["pat", &ALNUM[..14], ".", HEX, HEX]),
                "airtable-token",
            ),
            (
                made(&[&ALNUM[..14], ".atl", "asv1.", long, &ALNUM[..27]]),
                "terraform-token",
            ),
            (
                made(&["M", &ALNUM[..23], ".G1a2B3.", &ALNUM[..38]]),
                "discord-token",
            ),
            (made(&["abc8", "Q~", &ALNUM[..34]]), "azure-client-secret"),
            (made(&["1234567890", ":A", &ALNUM[..34]]), "telegram-token"),
            (jwt, "jwt"),
            (block, "private-key"),
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
                "https://hooks.slack.com/services/T0000AAAA/B0000BBBB/abcdefgh01234567ijklmnop)",
                "https://hooks.slack.com/services/[redacted: webhook])",
            ),
            (
                "https://discord.com/api/webhooks/123456789012345678/abcdefgh01234567ijklmnop",
                "https://discord.com/api/webhooks/[redacted: webhook]",
            ),
            (
                "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abcd1234efgh5678==",
                "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=[redacted: secret]",
            ),
            (
                "https://a.blob.core.windows.net/c/b?sv=2024-01-01&sig=abcd1234efgh5678%3D&se=1",
                "https://a.blob.core.windows.net/c/b?sv=2024-01-01&sig=[redacted: secret]&se=1",
            ),
            (
                "authorization: basic YXBwOnMzY3JldA==",
                "authorization: basic [redacted: basic-auth]",
            ),
        ] {
            assert_eq!(redacted(text).as_deref(), Some(shown), "{text}");
            // Redacting the result again changes nothing.
            assert_eq!(redacted(shown), None, "{shown}");
        }
    }

    #[test]
    fn a_long_random_token_of_no_known_kind_goes_and_its_prefix_stays() {
        let random = "a8Kd92mXq7Lw03PzR5vTn6Yb1CfHs4Je";
        for prefix in ["acme_live_", "lin-api-", "tok_"] {
            assert_eq!(
                redacted(&format!("use {prefix}{random}.")).as_deref(),
                Some(format!("use {prefix}[redacted: token].").as_str())
            );
        }
        // After a word for secrets 20 letters are enough.
        for prefix in ["acme_live_", "acme-api-", "my_secret_"] {
            assert_eq!(
                redacted(&format!("use {prefix}{}.", &random[..20])).as_deref(),
                Some(format!("use {prefix}[redacted: token].").as_str())
            );
        }
    }

    /// The time grows with the text and not with its square, whatever is repeated in it.
    #[test]
    fn the_time_is_linear_in_the_text() {
        let shapes = [
            ".",
            "-",
            "a.",
            "a-",
            "_",
            "=",
            "a=",
            "'",
            "\"",
            "token=",
            "token:",
            "token='",
            "pwd=\"",
            "token=(",
            "token.",
            "secret-",
            "://",
            "a://",
            "a://b:",
            "a://b:c@",
            "Bearer ",
            "bearer.",
            "Bearer a.",
            "Basic ",
            "Basic YQ",
            "sk-",
            "sk-a_",
            "eyJ",
            "eyJ-",
            "eyJ.",
            "eyJ-eyJ.eyJ",
            "SG.",
            "SG-",
            "-----BEGIN ",
            "-----BEGIN PRIVATE KEY",
            "ghp_",
            "xoxb-",
            "tskey-",
            "a_1B",
            "A1b",
            "M1.",
            "1.",
            "12345678:A",
            "abc1Q~",
            "hooks.slack.com/services/",
            "ops_eyJ",
            "hvs.",
            "AKIA",
            "é",
            "-é",
            " ",
            "\n",
            "x",
            "x*",
            "a_b.c-d=",
        ];
        let time = |text: &str| {
            let begun = std::time::Instant::now();
            let _redacted = redacted(text);
            begun.elapsed()
        };
        for shape in shapes {
            let text = |bytes: usize| shape.repeat(bytes / shape.len());
            // Eight times the text; quadratic time would take 64 times as long. Other programs may disturb the
            // measurement, so it is repeated.
            let tries = || {
                let (small, large) = (time(&text(2_500)), time(&text(20_000)));
                let ratio = large.as_secs_f64() / small.as_secs_f64().max(0.002);
                (ratio < 24.0).then_some(())
            };
            assert!((0..25).find_map(|_| tries()).is_some(), "{shape:?}");
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
            "sk-0123456789 is too short, sk-tests-of-the-whole-system-number-12",
            "ya29. is how they begin, ATATTACK, dapiserver, cionic, shpat_of_the_shop",
            "https://hooks.slack.com/services/ is where they go",
            "https://discord.com/api/webhooks/{id}/{token}",
            "key_of_the_map, cache-key-of-the-build-1, live-reload-works-since-2024",
            "api-ParsesHttp2FramesAndMore, token_9f86d081884c7d659a2f",
            "12345678:Another line of a log that goes on and on",
            "M1.G2.H3, Names.that.have-dots-between-them-and-are-long-1",
            "design=abcd1234efgh, sigma: abcd1234efgh",
            "Basic authentication is done",
            "Bearer authentication-middleware-added",
            "max_tokens=4096, tokens: 123456789",
            "password: ask the lead",
            "the token is $TOKEN, password=$DB_PASSWORD, password=<password>",
            "token = parser.next_token(1)",
            "password=get_password()",
            "key_password=None, self.password = password, db_password=cfg.password",
            "fn wait(sig: NonZeroI32)",
            "password=\"\"",
            "https://example.com:8080/a@b",
            "git@github.com:a/b.git",
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA",
            "AKIA is how they begin",
            "secret: the key idea",
            "ghp_short",
            "sha512-a8Kd92mXq7Lw03PzR5vTn6Yb1CfHs4Jea8Kd92mXq7Lw03PzR5vTn6Yb1CfHs4Je==",
            "sha256-a8Kd92mXq7Lw03PzR5vTn6Yb1CfHs4Je",
            "build-3fa94c1f0e2d4b6a8c0e2d4b6a8c0e2d4b6a8c0e",
            "msg_01XFDUDYJgAACzvnptVVYsEL",
            "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
            "pi_3MtwBwLkdIwHu7ix28a3tqPa",
            "cs_test_a11YYufWQzNY63zpQ6QSNRQhkUpVph4WRmzW0zWJO2znZKdVujZ0N0S22u",
            "user_2abcDEFghiJKLmnoPQRstuVWX12",
            "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
            "job-01ARZ3NDEKTSV4RRFFQ69G5FAV01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "test_ParsesHttp2FramesOfSha256AndMd5AndSha1Digests",
            "run_ParsesHttp2FramesAndSha256AndKeepsThemInOrder1",
            "dist/assets/index-DfG3k2Lm.js",
            "task-550e8400-e29b-41d4-a716-446655440000",
            "SG.1 and SG.2 are done",
            "pypi-upload-of-the-package-is-done",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        ] {
            assert_eq!(redacted(text), None, "{text}");
        }
    }
}
