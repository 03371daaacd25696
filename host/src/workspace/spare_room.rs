//! Room on the disk of the host that is set aside for a workspace that runs, so that how it
//! has ended can be recorded when that disk is full.

use std::{fs, io};

use super::{folder::Folder, record::Record};
use crate::error::Error;

/// The file that takes the room, in the folder of the workspace.
const SPARE: &str = "spare";

/// Enough for the record of a workspace with hundreds of snapshots.
const SIZE: usize = 64 << 10;

impl Folder {
    /// Sets the room aside, unless it is, or there is none.
    pub(super) fn set_room_aside(&self) {
        let path = self.path().join(SPARE);
        if path.exists() {
            return;
        }
        if let Err(error) = fs::write(&path, vec![0; SIZE]) {
            tracing::warn!(%error, "cannot set room aside for the end of a workspace");
            // What was written of it is no use.
            let _ = fs::remove_file(path);
        }
    }

    /// Writes a record that says how its VM has ended. If there is no room for it, it gets
    /// the one that was set aside.
    pub(super) fn write_end(&self, record: &Record) -> Result<(), Error> {
        let written = self.write(record);
        match self.give_room_back() {
            Ok(()) => written.or_else(|_| self.write(record)),
            Err(_) => written,
        }
    }

    /// Gives back what was set aside, because nothing runs any more.
    pub(super) fn give_room_back(&self) -> io::Result<()> {
        fs::remove_file(self.path().join(SPARE))
    }
}
