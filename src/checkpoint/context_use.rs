//! How full an agent's context is, and what the agent should do about it.

use serde::{Serialize, Serializer};

/// How much of its context an agent has used.
///
/// It is stored in ten-thousandths, rounded down: 0.74999 is below 75 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextUse(u32);

/// What the agent should do at this use of its context. Source: the builder-state protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ContextLevel {
    /// Below 75 %: nothing to do.
    Enough,
    /// From 75 % on: save a checkpoint for safety; work can go on.
    Approaching,
    /// From 90 % on: save a last checkpoint and end the work of this session.
    Reached,
}

const PARTS: f64 = 10_000.0;
const APPROACHING: u32 = 7_500;
const REACHED: u32 = 9_000;

impl ContextUse {
    /// Nothing is used.
    pub const NONE: ContextUse = ContextUse(0);

    /// The use as a fraction, 0.78 for 78 %. An estimate may be a little above 1. `None` for a negative number,
    /// and from 2 on, since that must be some other number.
    #[must_use]
    pub fn new(fraction: f64) -> Option<Self> {
        // The small addend corrects floating-point error: 0.58 times 10,000 is a little less than 5,800.
        let parts = (fraction * PARTS + 1e-9).floor();
        (fraction < 2.0 && parts >= 0.0).then_some(ContextUse(parts as u32))
    }

    /// The use as `used` of `most` tokens, or of messages if the tokens are unknown. `None` if `most` is 0.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn of(used: u64, most: u64) -> Option<Self> {
        Self::new((used as f64 / most as f64).min(1.0)).filter(|_| most > 0)
    }

    /// The use as a fraction.
    #[must_use]
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / PARTS
    }

    /// The level that this use reaches.
    #[must_use]
    pub fn level(self) -> ContextLevel {
        match self.0 {
            REACHED.. => ContextLevel::Reached,
            APPROACHING.. => ContextLevel::Approaching,
            _ => ContextLevel::Enough,
        }
    }
}

impl ContextLevel {
    /// The message for the agent; `None` while there is enough context.
    #[must_use]
    pub fn message(self) -> Option<&'static str> {
        match self {
            ContextLevel::Enough => None,
            ContextLevel::Approaching => Some("Context limit approaching, creating checkpoint"),
            ContextLevel::Reached => Some("Context limit reached. Resume with new session."),
        }
    }
}

impl Serialize for ContextUse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_asks_for_a_checkpoint_at_75_and_for_an_end_at_90_percent() {
        for (fraction, level) in [
            (0.0, ContextLevel::Enough),
            (0.749_99, ContextLevel::Enough),
            (0.75, ContextLevel::Approaching),
            (0.899_99, ContextLevel::Approaching),
            (0.9, ContextLevel::Reached),
            (1.04, ContextLevel::Reached),
        ] {
            assert_eq!(
                ContextUse::new(fraction).unwrap().level(),
                level,
                "{fraction}"
            );
        }
        assert_eq!(ContextUse::of(150, 200), ContextUse::new(0.75));
        assert_eq!(ContextUse::of(9, 3).unwrap().level(), ContextLevel::Reached);
        assert_eq!((ContextUse::of(1, 0), ContextUse::of(0, 0)), (None, None));
        for none in [-0.1, 2.0, 78.0, f64::NAN, f64::INFINITY] {
            assert_eq!(ContextUse::new(none), None, "{none}");
        }
    }
}
