use core::fmt;

use rustix::io::Errno;

/// A system call of the agent failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelError(pub Errno);

impl From<Errno> for KernelError {
    fn from(errno: Errno) -> Self {
        Self(errno)
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl core::error::Error for KernelError {}
