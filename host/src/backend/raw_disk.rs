//! Disks for VMMs that do not support layers: a copy of the image, which is
//! almost free on file systems with reflinks.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use rustix::{
    fs::{SeekFrom, ioctl_ficlone, seek},
    io::Errno,
};

use super::{LayerQuota, Machine, PartKind, Root, savable::MAX_DEVICE_STATE};
use crate::{error::Error, metrics::DiskFile, overlay::open_image, quotas::Quotas};

/// How much is copied at a time.
const CHUNK: usize = 1 << 20;

/// Creates the disk of a machine, as an unnamed raw file that is gone with the
/// VM. `backend` is used in errors.
pub(super) fn raw_disk(machine: &Machine, backend: &str) -> Result<File, Error> {
    let disk = match &machine.layer {
        None => tempfile::tempfile_in(machine.scratch_folder()),
        Some(path) => File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path),
    };
    let disk = disk.map_err(Error::host("make the VM's disk"))?;
    fill_raw_disk(machine, backend, &disk)?;
    Ok(disk)
}

/// Fails if a machine that is restored has a rate of its disk: it goes on with the one that is
/// saved with its devices.
pub(super) fn check_disk_rate(machine: &Machine, backend: &str) -> Result<(), Error> {
    match (machine.saved(), machine.quotas.disk_rate) {
        (Some(_), Some(_)) => Err(Error::Quota {
            quota: Quotas::DISK_RATE,
            reason: format!(
                "a VM of the backend {backend} that is restored has the rate with which it was \
                 saved: choose the backend qemu"
            ),
        }),
        _ => Ok(()),
    }
}

/// Returns the quota of such a disk, and the most bytes of each file that the VMM writes.
pub(super) fn raw_disk_quota(
    machine: &Machine,
    disk: &File,
    backend: &str,
) -> Result<(LayerQuota, u64), Error> {
    let size = disk.metadata().map_err(Error::host("open the VM's disk"))?;
    let size = size.len();
    let quota = LayerQuota::of_raw_disk(&machine.quotas, DiskFile::new(disk), size, backend)?;
    // Some have files in memory for that of the guest, and files for it when they save it.
    let memory = (u64::from(machine.memory_mib()) << 20) + MAX_DEVICE_STATE;
    Ok((quota, size.max(memory)))
}

/// Copies the image of a machine, or the disk that it had when it was saved, to an empty
/// file.
pub(super) fn fill_raw_disk(machine: &Machine, backend: &str, disk: &File) -> Result<(), Error> {
    if let Some(saved) = machine.saved() {
        let restored = saved.open_first(PartKind::Disk).and_then(|saved| {
            let size = saved.metadata()?.len();
            copy(&saved, size, disk)
        });
        return restored.map_err(Error::host("copy the saved disk"));
    }
    let image = match machine.root() {
        Root::Image(image) => image,
        other => return Err(unsupported_root(other, backend)),
    };
    let (image, size) = open_image(image)?;
    let copied = copy(&image, size, disk).and_then(|()| match machine.disk_size {
        Some(larger) if larger > size => disk.set_len(larger),
        _ => Ok(()),
    });
    copied.map_err(Error::host("copy the image to the VM's disk"))
}

/// The error for a root that the backend cannot boot from.
fn unsupported_root(root: &Root, backend: &str) -> Error {
    Error::Invalid(format!(
        "the backend {backend} boots from raw images only, not from {}: choose the backend qemu, \
         or make a raw image of it",
        root.path().display()
    ))
}

/// Copies `from` to `to`: as a reflink if possible, or else by copying
/// everything except holes.
pub(super) fn copy(from: &File, size: u64, to: &File) -> io::Result<()> {
    if ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    to.set_len(size)?;
    let mut buffer = vec![0; CHUNK];
    let mut end = 0;
    while let Some(start) = next(from, SeekFrom::Data(end))? {
        end = next(from, SeekFrom::Hole(start))?.unwrap_or(size).min(size);
        let mut at = start;
        while at < end {
            let length = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            let chunk = buffer.get_mut(..length).unwrap_or_default();
            from.read_exact_at(chunk, at)?;
            to.write_all_at(chunk, at)?;
            at += chunk.len() as u64;
        }
    }
    Ok(())
}

/// Returns where the next data or hole begins (lseek(2)); `None` if there is
/// none.
fn next(file: &File, position: SeekFrom) -> io::Result<Option<u64>> {
    match seek(file, position) {
        Ok(offset) => Ok(Some(offset)),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_copy_is_the_same_and_keeps_its_holes() {
        const SIZE: u64 = 64 << 20;
        let from = tempfile::tempfile().unwrap();
        from.set_len(SIZE).unwrap();
        let large = vec![7; 3 * CHUNK / 2];
        for (offset, bytes) in [(0, &b"begin"[..]), (10 << 20, &large), (SIZE - 3, b"end")] {
            from.write_all_at(bytes, offset).unwrap();
        }
        let to = tempfile::tempfile().unwrap();
        copy(&from, SIZE, &to).unwrap();
        let read = |file: &File| {
            let mut bytes = vec![0; SIZE as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        assert_eq!(to.metadata().unwrap().len(), SIZE);
        assert!(read(&from) == read(&to));
        let allocated = to.metadata().unwrap().blocks() * 512;
        assert!(allocated < 4 << 20, "{allocated}");
    }

    #[test]
    fn an_image_of_nothing_but_holes_is_copied() {
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        from.set_len(1 << 20).unwrap();
        copy(&from, 1 << 20, &to).unwrap();
        assert_eq!(to.metadata().unwrap().len(), 1 << 20);
    }
}
