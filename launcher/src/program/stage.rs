use std::fmt::Display;

use vmcell_launcher::{Failure, Layer};

/// Says in errors what was being done.
pub(crate) trait StageExt<T> {
    /// For what has to succeed.
    fn stage(self, doing: &str) -> Result<T, Failure>;

    /// For what a VMM could also run without.
    fn layer(self, layer: Layer, doing: &str) -> Result<T, Failure>;
}

impl<T, E: Display> StageExt<T> for Result<T, E> {
    fn stage(self, doing: &str) -> Result<T, Failure> {
        self.map_err(|error| failure(None, doing, error))
    }

    fn layer(self, layer: Layer, doing: &str) -> Result<T, Failure> {
        self.map_err(|error| failure(Some(layer), doing, error))
    }
}

pub(crate) fn failure(layer: Option<Layer>, doing: &str, reason: impl Display) -> Failure {
    Failure {
        layer,
        doing: doing.to_owned(),
        reason: reason.to_string(),
    }
}
