use std::{fs::File, io, os::fd::AsRawFd as _, path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::snapshot::SnapshotError;

/// A VM that a backend has [saved](super::VmmControl::save) into a folder.
#[derive(Clone, Debug)]
pub struct SavedVm {
    /// What the VM can be restored on.
    pub vmm: VmmRecord,
    /// The files that were written.
    pub parts: Vec<SavedPart>,
    /// The image below all layers, which is not in the folder.
    pub image: Option<PathBuf>,
    /// The size of the disk in bytes.
    pub disk_size: u64,
}

/// What a saved VM can be restored on. A VMM that differs in any of it would restore
/// the VM wrongly, often without an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmmRecord {
    /// The version of the VMM.
    pub version: String,
    /// The machine: its kind, its processors, its memory and its devices.
    pub machine: String,
    /// The processor of the host, if the guest depends on it; else empty.
    pub processor: String,
    /// The frequency of the host's time stamp counter in kHz, if the guest was told it.
    pub tsc_khz: Option<u64>,
}

/// A file of a saved VM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedPart {
    /// The name of the file in the folder.
    pub name: String,
    /// What it contains.
    pub kind: PartKind,
}

/// What a file of a saved VM contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PartKind {
    /// The state of processors and devices, and the memory if it has no file of its own.
    State,
    /// The memory. It is given to the backend in an unnamed file in memory, which no
    /// process can write.
    Memory,
    /// A layer of the disk, a qcow2 file. The topmost comes first.
    Layer,
    /// The whole disk, a raw file. There is nothing below it.
    Disk,
}

/// A saved VM that is to be restored. All of it has been checked.
#[derive(Clone, Debug)]
pub struct SavedMachine {
    pub(crate) vmm: VmmRecord,
    pub(crate) parts: Vec<(SavedPart, Arc<File>)>,
    pub(crate) image: Option<PathBuf>,
    pub(crate) disk_size: u64,
}

impl SavedPart {
    pub(crate) fn new(name: &str, kind: PartKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
        }
    }
}

impl SavedMachine {
    /// Returns what it can be restored on.
    pub fn vmm(&self) -> &VmmRecord {
        &self.vmm
    }

    /// Returns whether it has a file of this kind.
    pub fn has(&self, kind: PartKind) -> bool {
        self.parts.iter().any(|(part, _)| part.kind == kind)
    }

    /// Opens the files of a kind for reading, in the order in which they were saved. Each
    /// has a position of its own.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub fn open(&self, kind: PartKind) -> io::Result<Vec<File>> {
        let files = self.parts.iter().filter(|(part, _)| part.kind == kind);
        let open = |file: &Arc<File>| File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
        files.map(|(_, file)| open(file)).collect()
    }

    /// Opens the first file of a kind, of which there must be one.
    pub(crate) fn open_first(&self, kind: PartKind) -> io::Result<File> {
        let file = self.open(kind)?.into_iter().next();
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl VmmRecord {
    /// Checks that a VM that was saved with this can be restored `here`. Names the first
    /// difference.
    pub(crate) fn check(&self, here: &Self) -> Result<(), SnapshotError> {
        let check = |what, saved: &str, here: &str| match saved == here {
            true => Ok(()),
            false => Err(SnapshotError::Differs {
                what,
                saved: saved.to_owned(),
                here: here.to_owned(),
            }),
        };
        check("the version of the VMM", &self.version, &here.version)?;
        check("the machine", &self.machine, &here.machine)?;
        check("the processor", &self.processor, &here.processor)?;
        if let (Some(saved), Some(here)) = (self.tsc_khz, here.tsc_khz)
            // Two measurements of one counter differ by 1 in 10,000 at most.
            && saved.abs_diff(here) < saved / 1000
        {
            return Ok(());
        }
        let text = |rate: Option<u64>| match rate {
            Some(rate) => format!("{rate} kHz"),
            None => "not constant".to_owned(),
        };
        check(
            "the frequency of the time stamp counter",
            &text(self.tsc_khz),
            &text(here.tsc_khz),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> VmmRecord {
        VmmRecord {
            version: "7.2.22".to_owned(),
            machine: "-m 256M".to_owned(),
            processor: String::new(),
            tsc_khz: Some(2_000_000),
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let there = record();
        let difference = |change: fn(&mut VmmRecord)| {
            let mut here = record();
            change(&mut here);
            there.check(&here).err().map(|error| error.to_string())
        };
        assert_eq!(difference(|_| {}), None);
        assert_eq!(difference(|here| here.tsc_khz = Some(2_000_150)), None);
        for (change, expected) in [
            (
                (|here| here.version = "8.2.0".to_owned()) as fn(&mut VmmRecord),
                "the snapshot does not fit this machine: the version of the VMM was 7.2.22, here it is 8.2.0",
            ),
            (
                |here| here.machine = "-m 512M".to_owned(),
                "the snapshot does not fit this machine: the machine was -m 256M, here it is -m 512M",
            ),
            (
                |here| here.tsc_khz = Some(2_100_000),
                "the snapshot does not fit this machine: the frequency of the time stamp counter \
                 was 2000000 kHz, here it is 2100000 kHz",
            ),
            (
                |here| here.tsc_khz = None,
                "the snapshot does not fit this machine: the frequency of the time stamp counter \
                 was 2000000 kHz, here it is not constant",
            ),
        ] {
            assert_eq!(difference(change).as_deref(), Some(expected));
        }
    }
}
