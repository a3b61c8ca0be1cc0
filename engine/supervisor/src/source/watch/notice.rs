//! What whoever waits for changes is told.

use std::path::PathBuf;

/// Something noticed, or asked for.
#[derive(Debug)]
pub enum Notice {
    /// A path changed.
    Path(PathBuf),
    /// Anything may have changed.
    Everything,
    /// Nothing changed, but somebody else has something for whoever waits.
    Ready,
    /// The system has no more watches to give: notifications are no longer complete.
    Deaf,
}
