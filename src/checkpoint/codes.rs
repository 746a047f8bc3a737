//! The codes of violations of a format's rules, beside those of the shape.

use crate::json::Code;

impl Code {
    /// A text that should be an RFC 3339 time with a zone is none.
    pub const BAD_TIMESTAMP: Code = Code::new("bad-timestamp");
    /// A time more than 5 seconds after the clock that was given.
    pub const FUTURE_TIMESTAMP: Code = Code::new("future-timestamp");
    /// A time before one that it must follow.
    pub const OUT_OF_ORDER: Code = Code::new("out-of-order");
    /// An id that does not have the form its format gives.
    pub const BAD_ID: Code = Code::new("bad-id");
    /// An element is in two lists that must have none in common, or twice in one.
    pub const NOT_DISJOINT: Code = Code::new("not-disjoint");
    /// An element is not in the list that must hold it.
    pub const NOT_SUBSET: Code = Code::new("not-subset");
    /// A count does not agree with what it counts.
    pub const COUNT_MISMATCH: Code = Code::new("count-mismatch");
    /// A text is longer than its format allows.
    pub const TOO_LONG: Code = Code::new("too-long");
    /// A value does not go with the status.
    pub const STATUS_RULE: Code = Code::new("status-rule");
    /// The id inside a checkpoint does not fit the key it is kept under.
    pub const KEY_MISMATCH: Code = Code::new("key-mismatch");
    /// A later version of the format wrote the checkpoint: it can be read, not written.
    pub const NEWER_SCHEMA: Code = Code::new("newer-schema");

    /// Whether a JSON Schema of the format can find it: it is about one value where it stands, not about how
    /// values go together, the key, or a clock.
    #[must_use]
    pub fn is_shape(&self) -> bool {
        [
            Code::WRONG_TYPE,
            Code::MISSING,
            Code::UNKNOWN_VALUE,
            Code::OUT_OF_RANGE,
            Code::TOO_LONG,
            Code::BAD_ID,
            Code::BAD_TIMESTAMP,
        ]
        .contains(self)
    }
}
