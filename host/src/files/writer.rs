use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use vmcell_wire::{
    files::{FileOperation, Precondition, Write, WriteMode},
    limits::MAX_PAYLOAD,
};

use super::{
    Entry, FileOwner, Files, Job,
    operations::{entry_at, permissions},
};
use crate::{error::Error, session::StreamInput};

/// How to write a file.
///
/// ```
/// use vmcell::files::WriteOptions;
///
/// let script = WriteOptions::new().mode(0o755);
/// let log = WriteOptions::new().append();
/// let new = WriteOptions::new().only_if_absent();
/// ```
#[derive(Clone, Debug)]
pub struct WriteOptions {
    write_mode: WriteMode,
    precondition: Precondition,
    mode: Option<u32>,
    owner: Option<FileOwner>,
    size: Option<u64>,
    sync: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl WriteOptions {
    /// Replaces the whole file atomically: other processes see either the old
    /// content or the new one. An existing file keeps its owner and
    /// permissions; a new one gets mode 0644.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            write_mode: WriteMode::Replace,
            precondition: Precondition::Anything,
            mode: None,
            owner: None,
            size: None,
            sync: false,
        }
    }

    /// Appends the bytes to the file.
    #[must_use]
    pub const fn append(mut self) -> Self {
        self.write_mode = WriteMode::Append;
        self
    }

    /// Overwrites the file from this offset on.
    #[must_use]
    pub const fn at(mut self, offset: u64) -> Self {
        self.write_mode = WriteMode::At(offset);
        self
    }

    /// Writes only if the path does not exist.
    #[must_use]
    pub const fn only_if_absent(mut self) -> Self {
        self.precondition = Precondition::Absent;
        self
    }

    /// Writes only if the current content has this SHA-256.
    #[must_use]
    pub const fn only_if_sha256(mut self, digest: [u8; 32]) -> Self {
        self.precondition = Precondition::Digest(digest);
        self
    }

    /// Sets the permissions.
    #[must_use]
    pub const fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets the owner, instead of the one of the [`Files`].
    #[must_use]
    pub fn owner(mut self, owner: FileOwner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Announces the number of bytes, so that a disk without room for them
    /// fails at once.
    #[must_use]
    pub const fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Syncs the file to the guest's disk before the write completes.
    #[must_use]
    pub const fn sync(mut self) -> Self {
        self.sync = true;
        self
    }
}

impl Files {
    /// Writes a whole file. Creates missing parent directories.
    ///
    /// # Errors
    /// [`Error::File`], for example if the disk is full or the path is a
    /// directory. An existing file then keeps its content.
    ///
    /// # Cancel safety
    /// If the future is dropped, the file has its old or its new content.
    pub async fn write(
        &self,
        path: impl AsRef<Path>,
        bytes: impl Into<Bytes>,
    ) -> Result<Entry, Error> {
        self.write_with(path, bytes, WriteOptions::new()).await
    }

    /// Writes bytes with options.
    ///
    /// # Errors
    /// [`Error::File`], with the kind
    /// [`Conflict`](super::FileFailureKind::Conflict) if the file is not as the
    /// options expect it.
    ///
    /// # Cancel safety
    /// If the future is dropped, a replaced file has its old or its new
    /// content; a file that is changed in place may have a part of the bytes.
    pub async fn write_with(
        &self,
        path: impl AsRef<Path>,
        bytes: impl Into<Bytes>,
        options: WriteOptions,
    ) -> Result<Entry, Error> {
        let bytes = bytes.into();
        let options = options.size(bytes.len() as u64);
        let mut writer = self.writer(path, options).await?;
        writer.write(bytes).await?;
        writer.finish().await
    }

    /// Writes a file piece by piece. A replaced file gets its new content only
    /// at [`FileWriter::finish`].
    ///
    /// # Errors
    /// If the path is invalid, or the VM is gone. An error of the file is
    /// reported with a later piece or at the end.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn writer(
        &self,
        path: impl AsRef<Path>,
        options: WriteOptions,
    ) -> Result<FileWriter, Error> {
        let path = path.as_ref();
        let top = self.relative_path(path)?.to_owned();
        let owner = options.owner.as_ref().unwrap_or(&self.owner);
        let operation = FileOperation::Write(Write {
            path: self.relative_bytes(path)?,
            write_mode: options.write_mode,
            precondition: options.precondition,
            mode: options.mode.map(permissions).transpose()?,
            owner: owner.as_wire(),
            size: options.size,
            sync: options.sync,
        });
        let job = self.begin(path, operation).await?;
        let input = job.input();
        Ok(FileWriter { job, input, top })
    }
}

/// Writes a file of a guest piece by piece.
///
/// A file that was to be replaced stays unchanged if this is dropped before
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct FileWriter {
    job: Job,
    input: StreamInput,
    top: PathBuf,
}

impl FileWriter {
    /// Adds bytes. Waits until the guest has room for them.
    ///
    /// # Errors
    /// [`Error::File`] if the guest has stopped, for example because its disk
    /// is full.
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the bytes may have been added.
    pub async fn write(&mut self, bytes: impl Into<Bytes>) -> Result<(), Error> {
        if self.input.write(bytes.into()).await {
            return Ok(());
        }
        // The guest has stopped reading, and its answer contains the reason.
        match self.job.next_answer(|_| ()).await {
            Err(error) => Err(error),
            Ok(_) => Err(Error::unexpected_reply()),
        }
    }

    /// Ends the input, and waits until the file is written.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the file may or may not be written.
    pub async fn finish(self) -> Result<Entry, Error> {
        self.input.end();
        let top = self.top;
        self.job
            .single_answer(|answer| entry_at(answer, &top))
            .await
    }
}

/// An error of the guest is reported as [`io::ErrorKind::BrokenPipe`];
/// [`finish`](FileWriter::finish) returns the reason. Shutting down does
/// nothing: only `finish` completes the file.
impl AsyncWrite for FileWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = bytes.len().min(MAX_PAYLOAD as usize);
        let mut rest = Bytes::copy_from_slice(&bytes[..count]);
        if !ready!(self.input.poll_write(context, &mut rest)) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Poll::Ready(Ok(count - rest.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
