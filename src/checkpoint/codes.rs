//! The codes for violations of a format's rules. The codes for violations of shape are in the module `json`.

use crate::json::Code;

impl Code {
    /// A text that should be an RFC 3339 time with a zone is not one.
    pub const BAD_TIMESTAMP: Code = Code::new("bad-timestamp");
    /// A time is more than 5 seconds ahead of the given clock.
    pub const FUTURE_TIMESTAMP: Code = Code::new("future-timestamp");
    /// A time is earlier than one that it must follow.
    pub const OUT_OF_ORDER: Code = Code::new("out-of-order");
    /// An id does not have the form that its format requires.
    pub const BAD_ID: Code = Code::new("bad-id");
    /// An element is in two lists that must not share any, or twice in one list.
    pub const NOT_DISJOINT: Code = Code::new("not-disjoint");
    /// An element is missing from the list that must contain it.
    pub const NOT_SUBSET: Code = Code::new("not-subset");
    /// A count differs from the number of the items that it counts.
    pub const COUNT_MISMATCH: Code = Code::new("count-mismatch");
    /// A text is longer than its format allows.
    pub const TOO_LONG: Code = Code::new("too-long");
    /// A value is not allowed with the status.
    pub const STATUS_RULE: Code = Code::new("status-rule");
    /// The id inside a checkpoint does not match its key.
    pub const KEY_MISMATCH: Code = Code::new("key-mismatch");
    /// A later version of the format wrote the checkpoint: it can be read, not written.
    pub const NEWER_SCHEMA: Code = Code::new("newer-schema");

    /// Whether a JSON Schema of the format can find the violation: it concerns a single value, not a
    /// combination of values, the key, or a clock.
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
