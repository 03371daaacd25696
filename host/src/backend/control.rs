use std::{fmt, path::Path};

use super::SavedVm;
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

    /// Saves the VM, which is paused, into new files of a folder: the state of its
    /// processors and devices, its memory, and its disk above the image, or all of it. It stays
    /// paused. The files must be readable by their owner only. What is left of them
    /// after an error is removed by the caller.
    ///
    /// A backend that can do this also restores: see
    /// [`Machine::saved`](super::Machine::saved). If the agent is reached through vsock, it
    /// is connected to anew when the VM goes on.
    ///
    /// # Errors
    /// [`Error::Control`], or [`Error::Host`] if a file cannot be written. By default
    /// it cannot be done.
    fn save(&mut self, folder: &Path) -> Result<SavedVm, Error> {
        let _ = folder;
        Err(Error::Control {
            doing: "save the VM",
            reason: "the backend cannot: choose the backend qemu".to_owned(),
        })
    }

    /// Saves the VM as [`save`](Self::save) does, but for its disk, which is one that is
    /// kept. All that was written must be in its files: the VM is ended then.
    ///
    /// To restore it, [`Machine::root`](super::Machine::root) is that disk.
    ///
    /// # Errors
    /// Same as [`save`](Self::save).
    fn save_without_disk(&mut self, folder: &Path) -> Result<SavedVm, Error> {
        let _ = folder;
        Err(Error::Control {
            doing: "save the VM without its disk",
            reason: "the backend cannot: choose the backend qemu".to_owned(),
        })
    }

    /// Makes the VM, which is paused, write to a new layer of its disk, a new file at
    /// `path`, whose backing file is the layer that it has written to until now. That is
    /// not written any more, and can be opened by others. It stays paused.
    ///
    /// # Errors
    /// [`Error::Disk`], [`Error::Control`]: the disk is as before, and no file is left
    /// behind. By default it cannot be done.
    fn switch_disk(&mut self, path: &Path) -> Result<(), Error> {
        let _ = path;
        Err(Error::Control {
            doing: "switch the disk of the VM",
            reason: "the backend cannot: choose the backend qemu".to_owned(),
        })
    }
}

/// What not every backend can do with a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// [Pause](crate::Vm::pause) it.
    Pause,
    /// Take a [snapshot](crate::Vm::snapshot) of it, and restore that.
    Snapshot,
    /// [Switch its disk](crate::Vm::switch_disk) to a new layer.
    SwitchDisk,
}

impl Feature {
    /// Returns a name that never changes: `pause`, `snapshot`, `switch-disk`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Snapshot => "snapshot",
            Self::SwitchDisk => "switch-disk",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pause => "pause a VM",
            Self::Snapshot => "take a snapshot of a VM",
            Self::SwitchDisk => "switch the disk of a VM",
        })
    }
}
