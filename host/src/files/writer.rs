use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use vmcell_wire::{
    files::{Expect, Work, Write, WritePlace},
    limits::MAX_PAYLOAD,
};

use super::{
    Entry, FileOwner, Files, Job,
    operations::{entry_at, permissions},
};
use crate::{error::Error, session::StreamInput};

/// How a file is written.
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
    place: WritePlace,
    expect: Expect,
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
    /// The bytes become the whole file: whoever opens it meanwhile sees all of
    /// the old one or all of the new one. A file that was there keeps its
    /// owner and its permissions; a new one gets 0644.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            place: WritePlace::Replace,
            expect: Expect::Anything,
            mode: None,
            owner: None,
            size: None,
            sync: false,
        }
    }

    /// The bytes go behind the end of the file.
    #[must_use]
    pub const fn append(mut self) -> Self {
        self.place = WritePlace::Append;
        self
    }

    /// The bytes go over what is there from this offset on.
    #[must_use]
    pub const fn at(mut self, offset: u64) -> Self {
        self.place = WritePlace::At(offset);
        self
    }

    /// Only if nothing is there.
    #[must_use]
    pub const fn only_if_absent(mut self) -> Self {
        self.expect = Expect::Absent;
        self
    }

    /// Only if the file's bytes have this SHA-256 now.
    #[must_use]
    pub const fn only_if_sha256(mut self, digest: [u8; 32]) -> Self {
        self.expect = Expect::Digest(digest);
        self
    }

    /// Its permissions.
    #[must_use]
    pub const fn mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Whose it is, if not as the [`Files`] say.
    #[must_use]
    pub fn owner(mut self, owner: FileOwner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// How many bytes will come, if that is known: a disk without room for
    /// them says so at once.
    #[must_use]
    pub const fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// It is safe on the guest's disk before it counts as written.
    #[must_use]
    pub const fn sync(mut self) -> Self {
        self.sync = true;
        self
    }
}

impl Files {
    /// Writes a whole file. Directories above it that are missing are made.
    ///
    /// # Errors
    /// [`Error::File`]: the disk is full, a directory is in the way. What was
    /// there is then as it was.
    ///
    /// # Cancel safety
    /// The old file or the new one is there if the future is dropped.
    pub async fn write(
        &self,
        path: impl AsRef<Path>,
        bytes: impl Into<Bytes>,
    ) -> Result<Entry, Error> {
        self.write_with(path, bytes, WriteOptions::new()).await
    }

    /// Writes bytes as the options say.
    ///
    /// # Errors
    /// [`Error::File`], of the kind
    /// [`Conflict`](super::FileFailureKind::Conflict) if the file is not as
    /// the options expect it.
    ///
    /// # Cancel safety
    /// A file that is replaced is the old one or the new one if the future is
    /// dropped; one that is changed in place may have a part of the bytes.
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

    /// Writes a file piece by piece. Nothing counts before
    /// [`FileWriter::finish`].
    ///
    /// # Errors
    /// The path makes no sense, or the VM is gone. That the file cannot be
    /// written comes with a piece or at the end.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn writer(
        &self,
        path: impl AsRef<Path>,
        options: WriteOptions,
    ) -> Result<FileWriter, Error> {
        let path = path.as_ref();
        let top = self.below(path)?.to_owned();
        let owner = options.owner.as_ref().unwrap_or(&self.owner);
        let work = Work::Write(Write {
            path: self.inside(path)?,
            place: options.place,
            expect: options.expect,
            mode: options.mode.map(permissions).transpose()?,
            owner: owner.as_wire(),
            size: options.size,
            sync: options.sync,
        });
        let job = self.begin(path, work).await?;
        let input = job.input();
        Ok(FileWriter { job, input, top })
    }
}

/// A file that is being written.
///
/// Dropping it before it is [finished](Self::finish) leaves a file that was to
/// be replaced as it was.
#[derive(Debug)]
pub struct FileWriter {
    job: Job,
    input: StreamInput,
    top: PathBuf,
}

impl FileWriter {
    /// Adds bytes; waits until the guest has room for them.
    ///
    /// # Errors
    /// [`Error::File`] if the guest has given up: its disk may be full.
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the bytes may have been added.
    pub async fn write(&mut self, bytes: impl Into<Bytes>) -> Result<(), Error> {
        if self.input.write(bytes.into()).await {
            return Ok(());
        }
        // Nobody reads any more, and the outcome tells why.
        match self.job.next_answer(|_| ()).await {
            Err(error) => Err(error),
            Ok(_) => Err(Error::unexpected_reply()),
        }
    }

    /// Says that these were all bytes, and waits until the file is written.
    ///
    /// # Errors
    /// [`Error::File`].
    ///
    /// # Cancel safety
    /// The file may or may not be written if the future is dropped.
    pub async fn finish(self) -> Result<Entry, Error> {
        self.input.end();
        let top = self.top;
        self.job.only_answer(|answer| entry_at(answer, &top)).await
    }
}

/// An error of the guest comes as [`io::ErrorKind::BrokenPipe`];
/// [`finish`](FileWriter::finish) tells which one. Shutting down does nothing:
/// what is not finished does not count.
impl AsyncWrite for FileWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let most = bytes.len().min(MAX_PAYLOAD as usize);
        let mut rest = Bytes::copy_from_slice(&bytes[..most]);
        if !ready!(self.input.poll_write(context, &mut rest)) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Poll::Ready(Ok(most - rest.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
