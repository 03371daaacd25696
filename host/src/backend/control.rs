use std::fmt;

use crate::error::Error;

/// Control over a running VMM.
///
/// Its methods are called on a thread that may block, one at a time. A VMM that does
/// not answer must not block them for long: a few seconds at most.
pub trait VmmControl: fmt::Debug + Send {
    /// Pauses the VM. When it returns, the processors of the VM stand still, and
    /// time in the VM too.
    ///
    /// # Errors
    /// [`Error::Control`]
    fn pause(&mut self) -> Result<(), Error>;

    /// Resumes the VM where it was paused.
    ///
    /// # Errors
    /// [`Error::Control`]
    fn resume(&mut self) -> Result<(), Error>;
}

/// What not every backend can do with a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// [Pause](crate::Vm::pause) it.
    Pause,
}

impl Feature {
    /// Returns a name that never changes: `pause`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
