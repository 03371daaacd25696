use std::{
    fs::{File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustix::{
    fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, openat},
    io::Errno,
    process::geteuid,
};

use super::{
    SnapshotError,
    file_record::FileRecord,
    manifest::{GuestRecord, MANIFEST, MAX_MANIFEST, Manifest, PartRecord},
    partial::io_error,
};
use crate::{
    backend::{PartKind, SavedMachine},
    sparse,
};

/// A snapshot that was checked, and whose files are open.
#[derive(Debug)]
pub(crate) struct LoadedSnapshot {
    pub(crate) guest: GuestRecord,
    pub(crate) machine: SavedMachine,
    /// The digest of the image.
    pub(crate) image_sha256: Option<sparse::Digest>,
}

impl LoadedSnapshot {
    /// Opens a snapshot and checks all of it. The image is looked for at `image`, or
    /// in the folder, or where it was. It reads all files.
    pub(crate) fn open(path: &Path, image: Option<&Path>) -> Result<Self, SnapshotError> {
        let folder = Folder::open(path)?;
        let manifest = folder.manifest()?;
        let image = match (&manifest.image, image) {
            (None, _) => None,
            (Some(record), other) => {
                let path = other.map_or_else(|| image_of(path, record), Path::to_owned);
                let wrong = |reason| SnapshotError::Image {
                    path: path.clone(),
                    reason,
                };
                let difference = record.difference(&path);
                let difference = difference.map_err(|error| {
                    wrong(format!(
                        "cannot be read: {error}. Name the image with `image` if it is \
                         somewhere else"
                    ))
                })?;
                match difference {
                    None => Some(path),
                    Some(difference) => return Err(wrong(difference)),
                }
            }
        };
        let parts = manifest.parts.iter().map(|part| {
            let file = folder.part(part)?;
            Ok((part.part.clone(), Arc::new(file)))
        });
        Ok(Self {
            machine: SavedMachine {
                parts: parts.collect::<Result<_, SnapshotError>>()?,
                vmm: manifest.vmm,
                image,
                disk_size: manifest.disk_size,
            },
            guest: manifest.guest,
            image_sha256: manifest.image.map(|record| record.sha256),
        })
    }
}

impl LoadedSnapshot {
    /// The same without its disk, for a VM that has a disk with the same contents.
    pub(crate) fn without_disk(&self) -> Self {
        let mut machine = self.machine.clone();
        machine
            .parts
            .retain(|(part, _)| part.kind != PartKind::Layer);
        Self {
            guest: self.guest.clone(),
            machine,
            image_sha256: self.image_sha256,
        }
    }
}

/// What the manifest of a snapshot says.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) image: Option<PathBuf>,
    pub(crate) vcpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) created: SystemTime,
    /// How many bytes it takes on the disk.
    pub(crate) bytes: u64,
}

impl Summary {
    /// Reads the manifest, and nothing else.
    pub(crate) fn read(path: &Path) -> Result<Self, SnapshotError> {
        let manifest = Folder::open(path)?.manifest()?;
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        // The image is shared with others.
        let entries = entries.filter(|entry| entry.file_name() != IMAGE);
        let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.blocks() * 512));
        let image = manifest.image.as_ref();
        Ok(Self {
            image: image.map(|image| image_of(path, image)),
            vcpus: manifest.guest.vcpus,
            memory_mib: manifest.guest.memory_mib,
            created: manifest.created(),
            bytes: sizes.sum(),
        })
    }
}

/// The name of the image in the folder of a snapshot that keeps it.
const IMAGE: &str = "image.ext4";

/// Gives the image another name in the folder of a snapshot, so that it is there as long as
/// the snapshot is. Does nothing if the image is in another file system.
pub(crate) fn keep_image(path: &Path) -> Result<(), SnapshotError> {
    if let Some(image) = Folder::open(path)?.manifest()?.image
        && let Err(error) = std::fs::hard_link(&image.path, path.join(IMAGE))
    {
        tracing::debug!(%error, "the image of a snapshot stays where it is");
    }
    Ok(())
}

/// Returns where the image of a snapshot is.
fn image_of(path: &Path, record: &FileRecord) -> PathBuf {
    let kept = path.join(IMAGE);
    match kept.exists() {
        true => kept,
        false => record.path.clone(),
    }
}

/// The open folder of a snapshot. Its files are opened in it, so that nobody can
/// replace it meanwhile.
struct Folder {
    path: PathBuf,
    directory: File,
}

impl Folder {
    fn open(path: &Path) -> Result<Self, SnapshotError> {
        let open = || {
            let directory = File::open(path)?;
            let metadata = directory.metadata()?;
            Ok((directory, metadata))
        };
        let (directory, metadata) = open().map_err(io_error(path, "open its folder"))?;
        if !metadata.is_dir() {
            let error = io::ErrorKind::NotADirectory.into();
            return Err(io_error(path, "open its folder")(error));
        }
        let folder = Self {
            path: path.to_owned(),
            directory,
        };
        folder.check_private(&metadata)?;
        Ok(folder)
    }

    fn check_private(&self, metadata: &Metadata) -> Result<(), SnapshotError> {
        let reason = if metadata.uid() != geteuid().as_raw() {
            "it belongs to another user"
        } else if metadata.mode() & 0o022 != 0 {
            "other users may write to it"
        } else {
            return Ok(());
        };
        Err(SnapshotError::NotPrivate {
            path: self.path.clone(),
            reason,
        })
    }

    /// Opens a file without following a symbolic link.
    fn file(&self, name: &str) -> Result<File, SnapshotError> {
        let open = || {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let file = File::from(openat(&self.directory, name, flags, Mode::empty())?);
            let metadata = file.metadata()?;
            Ok((file, metadata))
        };
        let (file, metadata) = match open() {
            Ok(opened) => opened,
            Err(error) if is_missing(&error) => {
                return Err(self.damaged(format!("its file {name} is missing")));
            }
            Err(error) => return Err(io_error(&self.path, "open its files")(error)),
        };
        if !metadata.is_file() {
            return Err(self.damaged(format!("{name} is not a file")));
        }
        self.check_private(&metadata)?;
        Ok(file)
    }

    fn manifest(&self) -> Result<Manifest, SnapshotError> {
        let mut json = Vec::new();
        let read = self
            .file(MANIFEST)?
            .take(MAX_MANIFEST)
            .read_to_end(&mut json);
        read.map_err(io_error(&self.path, "read its manifest"))?;
        let manifest = Manifest::from_json(&json, &self.path)?;
        let is_plain = |name: &str| !name.is_empty() && !name.contains('/') && name != "..";
        match manifest.parts.iter().all(|part| is_plain(&part.part.name)) {
            true => Ok(manifest),
            false => Err(self.damaged("its manifest names files elsewhere".to_owned())),
        }
    }

    /// Returns a file of the snapshot, checked and not compressed.
    fn part(&self, record: &PartRecord) -> Result<File, SnapshotError> {
        let name = &record.part.name;
        let stored = self.file(name)?;
        let size = stored
            .metadata()
            .map_err(io_error(&self.path, "read its files"))?
            .len();
        if !record.is_compressed && size != record.size {
            return Err(self.damaged(format!("{name} is cut short, or has grown")));
        }
        let is_memory = record.part.kind == PartKind::Memory;
        let loaded = match (record.is_compressed, is_memory) {
            (false, false) => sparse::digest(&stored).map(|digest| (digest, stored)),
            (false, true) => in_memory(record, |memory| sparse::copy_with_digest(&stored, memory)),
            (true, _) => in_memory(record, |memory| {
                sparse::unpack(zstd::Decoder::new(&stored)?, memory, record.size)
            }),
        };
        match loaded {
            Ok((digest, file)) if digest == record.sha256 => Ok(file),
            Ok(_) => Err(self.damaged(format!("{name} was changed"))),
            Err(error) if is_malformed(&error) => {
                Err(self.damaged(format!("{name} cannot be unpacked: {error}")))
            }
            Err(error) => Err(io_error(&self.path, "read its files")(error)),
        }
    }

    fn damaged(&self, reason: String) -> SnapshotError {
        SnapshotError::Damaged {
            path: self.path.clone(),
            reason,
        }
    }
}

/// Fills an unnamed file in memory, which nobody can write afterwards.
fn in_memory<T>(
    record: &PartRecord,
    fill: impl FnOnce(&File) -> io::Result<T>,
) -> io::Result<(T, File)> {
    let name = format!("vmcell-{}", record.part.name);
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create(name, flags)?);
    let filled = fill(&file)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok((filled, file))
}

fn is_missing(error: &io::Error) -> bool {
    // A symbolic link is not followed.
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::LOOP)
    )
}

fn is_malformed(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, Other, UnexpectedEof};
    matches!(error.kind(), InvalidData | Other | UnexpectedEof)
}
