//! The evidence that a file is of a format.

/// The evidence that a file is of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// Its strength: the strongest evidence wins, and two of equal strength are ambiguous. A protocol's own
    /// file name counts 4, and each member that only this format has counts 1.
    pub strength: u32,
    /// The evidence as text for a person.
    pub reason: String,
}

impl Evidence {
    /// Evidence of this strength, for this reason.
    pub fn new(strength: u32, reason: impl Into<String>) -> Self {
        Evidence {
            strength,
            reason: reason.into(),
        }
    }

    /// Evidence from a matching file name and from members that are present; `None` if there is neither.
    #[must_use]
    pub fn gather(name: Option<&str>, members: &[&str]) -> Option<Self> {
        let mut reasons = Vec::new();
        let mut strength = 0;
        if let Some(name) = name {
            strength += 4;
            reasons.push(format!("named {name}"));
        }
        if !members.is_empty() {
            strength += u32::try_from(members.len()).unwrap_or(u32::MAX - 4);
            reasons.push(format!("has {}", members.join(", ")));
        }
        (strength > 0).then(|| Evidence::new(strength, reasons.join("; ")))
    }
}
