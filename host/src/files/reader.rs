use std::{
    io,
    path::Path,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, ReadBuf};
use vmcell_wire::files::Work;

use super::{Files, Job, ReadOptions, job::JobError};
use crate::error::Error;

impl Files {
    /// [`read`](Self::read) takes no more than this.
    pub const DEFAULT_READ_LIMIT: u64 = 64 * 1024 * 1024;

    /// The bytes of a file, up to [64 MiB](Self::DEFAULT_READ_LIMIT); use
    /// [`read_with`](Self::read_with) or [`reader`](Self::reader) for more.
    ///
    /// # Errors
    /// [`Error::File`] if there is no such file, it is no regular file, or it
    /// is larger.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, Error> {
        let options = ReadOptions::new().limit(Self::DEFAULT_READ_LIMIT);
        self.read_with(path, options).await
    }

    /// A part of a file, or a file with another limit. Without a
    /// [limit](ReadOptions::limit) it is that of [`read`](Self::read), also for
    /// a part.
    ///
    /// # Errors
    /// See [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn read_with(
        &self,
        path: impl AsRef<Path>,
        options: ReadOptions,
    ) -> Result<Vec<u8>, Error> {
        let limit = options.limit.unwrap_or(Self::DEFAULT_READ_LIMIT);
        let mut reader = self.reader(path, options.limit(limit)).await?;
        let mut all = Vec::new();
        while let Some(bytes) = reader.next().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    /// A file piece by piece, as it comes. It has no limit unless the options
    /// name one.
    ///
    /// # Errors
    /// The path makes no sense, or the VM is gone. That the file cannot be
    /// read comes with the first piece.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn reader(
        &self,
        path: impl AsRef<Path>,
        options: ReadOptions,
    ) -> Result<FileReader, Error> {
        let path = path.as_ref();
        // One byte more tells whether there is more than the limit.
        let most = options
            .limit
            .map_or(u64::MAX, |limit| limit.saturating_add(1));
        let work = Work::Read {
            path: self.inside(path)?,
            offset: options.offset,
            length: options.length.min(most),
        };
        Ok(FileReader {
            job: self.begin(path, work).await?,
            asked: options.length,
            left: options.limit,
            limit: options.limit.unwrap_or(u64::MAX),
            unread: Bytes::new(),
            failed: false,
        })
    }
}

/// The bytes of a file, as they come from the guest.
///
/// The guest waits for whoever reads. Dropping it ends the reading.
#[derive(Debug)]
pub struct FileReader {
    job: Job,
    /// How many bytes were asked for and have not come.
    asked: u64,
    /// How many bytes may still come.
    left: Option<u64>,
    limit: u64,
    /// For `AsyncRead`.
    unread: Bytes,
    failed: bool,
}

impl FileReader {
    /// The next piece. None: that was all.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, or not all of it;
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        if !self.unread.is_empty() {
            return Ok(Some(std::mem::take(&mut self.unread)));
        }
        let Some(bytes) = self.job.next_bytes().await? else {
            return Ok(None);
        };
        self.count(&bytes)?;
        Ok(Some(bytes))
    }

    fn count(&mut self, bytes: &Bytes) -> Result<(), Error> {
        if let Some(left) = &mut self.left {
            match left.checked_sub(bytes.len() as u64) {
                Some(rest) => *left = rest,
                None => return Err(self.job.limit_reached(self.limit)),
            }
        }
        let rest = self.asked.checked_sub(bytes.len() as u64);
        self.asked = rest.ok_or_else(Error::unexpected_reply)?;
        Ok(())
    }
}

/// An error of the guest comes as [`io::ErrorKind::Other`] with the [`Error`]
/// in it, a lost link as [`io::ErrorKind::ConnectionAborted`].
impl AsyncRead for FileReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.failed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if self.unread.is_empty() {
            let next = match ready!(self.job.poll_bytes(context)) {
                Ok(None) => return Poll::Ready(Ok(())),
                Ok(Some(bytes)) => self.count(&bytes).map(|()| bytes).map_err(io::Error::other),
                Err(JobError::Error(error)) => Err(io::Error::other(error)),
                Err(JobError::Link(lost)) => {
                    let kind = io::ErrorKind::ConnectionAborted;
                    Err(io::Error::new(kind, lost.to_string()))
                }
            };
            match next {
                Ok(bytes) => self.unread = bytes,
                Err(error) => {
                    self.failed = true;
                    return Poll::Ready(Err(error));
                }
            }
        }
        let count = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..count]);
        self.unread.advance(count);
        Poll::Ready(Ok(()))
    }
}
