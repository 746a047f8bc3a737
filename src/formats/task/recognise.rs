//! The evidence that a file is a task checkpoint.

use crate::checkpoint::Evidence;
use crate::json::Document;

/// A `task`: no protocol gives its file a name, so its content alone counts.
pub(super) fn recognise(document: Option<&Document>) -> Option<Evidence> {
    let root = document?.root();
    let members: Vec<_> = [
        "completedSteps",
        "pendingSteps",
        "currentStep",
        "decisions",
        "metadata",
        "schemaVersion",
    ]
    .into_iter()
    .filter(|member| root.get(member).is_some())
    .collect();
    // One member alone could be anybody's.
    let enough = members.len() >= 2 && members.iter().any(|member| member.ends_with("Steps"));
    enough.then(|| Evidence::gather(None, &members)).flatten()
}
