//! Failures of requests, turned into errors of the library.

use std::fmt;
use std::time::Duration;

use agent_checkpoint::{Error, ErrorKind};

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no such object.
    Absent,
    /// The object is not in the state that the request expects.
    Lost,
    /// Unknown whether the request was done: no answer came, or the answer reports a broken server.
    Unknown(Cause),
    /// Refused; a retry does not help.
    Refused(Error),
}

/// The driver's text for a failure, without the parts that may hold credentials: some services repeat them in their
/// answers.
#[derive(Clone, Debug)]
pub(crate) struct Cause(String);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cause {}

impl Cause {
    pub(crate) fn timed_out(after: Duration) -> Cause {
        Cause(format!("no answer within {:.1} s", after.as_secs_f64()))
    }

    pub(crate) fn of(error: &object_store::Error) -> Cause {
        let text = error.to_string();
        // From an XML or JSON body only the name of the error is taken.
        let head = text.split(['<', '{']).next().unwrap_or_default();
        let head = without_user(head.trim_end_matches([':', ' ', '\n']));
        let code = between(&text, "<Code>", "</Code>").or(between(&text, "\"code\": \"", "\""));
        Cause(match code {
            Some(code) => format!("{head}: {code}"),
            None => head,
        })
    }
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> Option<&'t str> {
    let (_, behind) = text.split_once(from)?;
    Some(behind.split_once(to)?.0)
}

/// A text whose URLs have lost their user names and passwords.
pub(crate) fn without_user(text: &str) -> String {
    let mut parts = text.split("://");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['/', ' ', ')', '"', '?']).unwrap_or(part.len());
        let from = part[..end].rfind('@').map_or(0, |at| at + 1);
        clean.push_str("://");
        clean.push_str(&part[from..]);
    }
    clean
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Failure {
        use object_store::Error as Driver;
        let cause = Cause::of(&error);
        let refused =
            |code, message: &str| Failure::Refused(other(code, message).with_source(cause.clone()));
        match &error {
            // A missing bucket does not mean that the object is absent.
            _ if is_of_bucket(&error.to_string()) => no_bucket(cause),
            Driver::NotFound { .. } => Failure::Absent,
            Driver::AlreadyExists { .. } | Driver::Precondition { .. } => Failure::Lost,
            Driver::NotSupported { .. } | Driver::NotImplemented { .. } => cannot_compare(cause),
            Driver::PermissionDenied { .. } => refused(
                "permission-denied",
                "the object store denies access: these credentials need the right to read, write, delete and list \
                 the objects there",
            ),
            Driver::Unauthenticated { .. } => refused(
                "unauthenticated",
                "the object store does not accept these credentials; check them, and whether they expired",
            ),
            Driver::InvalidPath { .. } | Driver::UnknownConfigurationKey { .. } => {
                refused("invalid-place", "is not a place in an object store")
            }
            // The driver itself retries the errors for which that helps (408, 429).
            _ if cause.0.contains("status code: 4") => refused(
                "request-refused",
                "the object store refuses the request; see the cause",
            ),
            _ => Failure::Unknown(cause),
        }
    }
}

fn is_of_bucket(text: &str) -> bool {
    let of_bucket = ["NoSuchBucket", "ContainerNotFound", "specified bucket"];
    of_bucket.iter().any(|word| text.contains(word))
}

fn no_bucket(cause: Cause) -> Failure {
    let message = "there is no such bucket; make it first, or name another";
    Failure::Refused(other("no-bucket", message).with_source(cause))
}

fn cannot_compare(cause: Cause) -> Failure {
    Failure::Refused(no_compare_and_swap().with_source(cause))
}

pub(crate) fn no_compare_and_swap() -> Error {
    let message = "the object store does not support conditional puts (compare-and-swap), and without them writers \
                   would overwrite each other's saves; name another service, or enable its conditional puts";
    other("no-compare-and-swap", message)
}

impl Failure {
    /// The error for a request that expects an object to exist, or that writes unconditionally.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Failure::Refused(error) => error,
            Failure::Unknown(cause) => {
                let message = "the object store does not answer, or not correctly; nothing was written, try again";
                other("unreachable", message).with_source(cause)
            }
            Failure::Absent => {
                let message = "an object that the checkpoint names is missing; it may have been removed in the \
                               meantime";
                other("missing-object", message)
            }
            Failure::Lost => Error::new(ErrorKind::ChangedMeanwhile),
        }
    }
}

/// The error for a write of which it stays unknown whether it was done.
pub(crate) fn outcome_unknown() -> Error {
    let message = "the object store did not answer the write: it was made completely or not at all; load the \
                   checkpoint to find out";
    other("outcome-unknown", message)
}

pub(crate) fn unordered_listing() -> Error {
    let message = "this object store lists its objects in no order, so keys cannot be listed in pages (S3 Express One Zone does \
                   that); name a bucket of another kind";
    other("unordered-listing", message)
}

/// An error with a code that only this store uses.
pub(crate) fn other(code: &'static str, message: impl Into<String>) -> Error {
    let message = message.into();
    Error::new(ErrorKind::Other { code, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_tells_the_error_and_no_credentials() {
        let body = "Server returned non-2xx status code: 400 Bad Request: <Error><Code>InvalidToken</Code>\
                    <Token-0>hush</Token-0></Error>";
        let error = object_store::Error::Generic {
            store: "S3",
            source: body.into(),
        };
        let cause = Cause::of(&error).to_string();
        assert!(
            cause.contains("400 Bad Request: InvalidToken") && !cause.contains("hush"),
            "{cause}"
        );
        assert!(matches!(Failure::from(error), Failure::Refused(_)));
        assert_eq!(
            without_user("at http://one:two@host/a (s3://x@y) and http://host/@"),
            "at http://host/a (s3://y) and http://host/@"
        );
    }
}
