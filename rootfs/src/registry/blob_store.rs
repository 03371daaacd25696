use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;
use sha2::{Digest as _, Sha256};

use crate::kept_files::BLOBS;
use crate::oci::ImageProblem;
use crate::{Digest, Error};

/// A folder with blobs by their digest. Any number of programs may use one; each blob is fetched
/// by one at a time, and a fetch that was interrupted goes on where it was.
pub(super) struct BlobStore(PathBuf);

/// The end of the names of blobs that are being fetched.
const PARTIAL: &str = ".partial";

/// How often a fetch that breaks off goes on by itself, if it has got further each time.
const MAX_TRIES: usize = 10;

/// Why a blob is not in the store.
pub(super) enum FetchError {
    Image(ImageProblem),
    Host(Error),
}

impl From<ImageProblem> for FetchError {
    fn from(problem: ImageProblem) -> Self {
        Self::Image(problem)
    }
}

/// What is left of a blob to be fetched, from a byte on.
pub(super) struct Rest<R> {
    /// Zero if all of it follows.
    pub(super) offset: u64,
    pub(super) bytes: R,
}

impl BlobStore {
    /// The folder is one of a layout of OCI.
    pub(super) fn in_layout(folder: &Path) -> Self {
        Self(folder.join(BLOBS))
    }

    fn path(&self, digest: Digest) -> PathBuf {
        self.0.join(digest.to_string())
    }

    /// Returns whether a blob is here already. Its bytes are compared when they are read.
    fn has(&self, digest: Digest, size: u64) -> bool {
        let found = fs::metadata(self.path(digest));
        found.is_ok_and(|found| found.len() == size)
    }

    /// Adds a blob that is in memory.
    pub(super) fn add(&self, digest: Digest, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path(digest);
        let add = || {
            fs::create_dir_all(&self.0)?;
            let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
            file.write_all(bytes)?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        add().map_err(write_error(&path))
    }

    /// Fetches a blob, unless it is here. `open` returns it from a byte on, and `progress` is
    /// called with numbers of bytes.
    pub(super) fn fetch<R: Read>(
        &self,
        digest: Digest,
        size: u64,
        open: impl Fn(u64) -> Result<Rest<R>, ImageProblem>,
        cut_off: impl Fn(&io::Error) -> ImageProblem,
        progress: impl Fn(u64),
    ) -> Result<(), FetchError> {
        let partial = self.0.join(format!("{digest}{PARTIAL}"));
        let host = |source| FetchError::Host(write_error(&partial)(source));
        fs::create_dir_all(&self.0).map_err(host)?;
        let options = || {
            File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&partial)
        };
        let mut file = options().map_err(host)?;
        // Another program may fetch it now.
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))
            .map_err(|error| host(error.into()))?;
        if self.has(digest, size) {
            let _ = fs::remove_file(&partial);
            progress(size);
            return Ok(());
        }
        // The one who had the lock may have renamed it.
        if !is_same(&file, &partial) {
            return self.fetch(digest, size, open, cut_off, progress);
        }
        let mut hasher = Sha256::new();
        let mut offset = io::copy(&mut file, &mut HashWriter(&mut hasher)).map_err(host)?;
        progress(offset.min(size));
        let mut tries = 0;
        while offset < size || offset == 0 {
            let rest = open(offset)?;
            if rest.offset != offset {
                file.set_len(0).map_err(host)?;
                file.seek(SeekFrom::Start(0)).map_err(host)?;
                hasher = Sha256::new();
                offset = 0;
            }
            let before = offset;
            let received = receive(rest.bytes, &mut file, &mut hasher, size - offset, &progress);
            offset = file.stream_position().map_err(host)?;
            match received {
                Ok(()) => break,
                Err(Received::Host(error)) => return Err(host(error)),
                Err(Received::CutOff(error)) => {
                    tries += 1;
                    if offset == before || tries > MAX_TRIES {
                        return Err(cut_off(&error).into());
                    }
                }
            }
        }
        let found = Digest(hasher.finalize().into());
        if found != digest {
            let _ = fs::remove_file(&partial);
            return Err(ImageProblem::Digest {
                expected: digest,
                found,
            }
            .into());
        }
        file.sync_all().map_err(host)?;
        fs::rename(&partial, self.path(digest)).map_err(host)
    }
}

enum Received {
    Host(io::Error),
    /// The sender has broken off.
    CutOff(io::Error),
}

/// Receives this many bytes at most. One more is received to find out if there are more, and is
/// not what was promised.
fn receive(
    bytes: impl Read,
    file: &mut File,
    hasher: &mut Sha256,
    left: u64,
    progress: &impl Fn(u64),
) -> Result<(), Received> {
    let mut bytes = bytes.take(left + 1);
    let mut buffer = vec![0; 64 << 10];
    let mut all = 0;
    loop {
        let length = match bytes.read(&mut buffer) {
            Ok(0) if all < left => {
                return Err(Received::CutOff(io::ErrorKind::UnexpectedEof.into()));
            }
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Received::CutOff(error)),
        };
        hasher.update(&buffer[..length]);
        file.write_all(&buffer[..length]).map_err(Received::Host)?;
        all += length as u64;
        progress(length as u64);
    }
}

/// Returns whether a path is still that of an open file.
fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let open = file.metadata().map(identity);
    let named = fs::metadata(path).map(identity);
    matches!((open, named), (Ok(open), Ok(named)) if open == named)
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_error(path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Write {
        path: path.clone(),
        source,
    }
}
