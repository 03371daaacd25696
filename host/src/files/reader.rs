use std::{
    future::poll_fn,
    io,
    path::Path,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, ReadBuf};
use vmcell_wire::files::FileOperation;

use super::{Files, Job, ReadOptions};
use crate::{error::Error, event_stream::event_stream};

impl Files {
    /// The size limit of [`read`](Self::read).
    pub const DEFAULT_READ_LIMIT: u64 = 64 * 1024 * 1024;

    /// Reads a file of up to [64 MiB](Self::DEFAULT_READ_LIMIT). For larger
    /// ones, use [`read_with`](Self::read_with) or [`reader`](Self::reader).
    ///
    /// # Errors
    /// [`Error::File`] if the file does not exist, is not a regular file, or is
    /// larger.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, Error> {
        let options = ReadOptions::new().limit(Self::DEFAULT_READ_LIMIT);
        self.read_with(path, options).await
    }

    /// Reads a range of a file, or a file with another size limit. Without a
    /// [limit](ReadOptions::limit) the one of [`read`](Self::read) applies,
    /// also to a range.
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

    /// Reads a file piece by piece. The size is not limited unless the options
    /// set a limit.
    ///
    /// # Errors
    /// If the path is invalid, or the VM is gone. An error of the file is
    /// reported with the first piece.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn reader(
        &self,
        path: impl AsRef<Path>,
        options: ReadOptions,
    ) -> Result<FileReader, Error> {
        let path = path.as_ref();
        // One more byte shows whether the file exceeds the limit.
        let max = options
            .limit
            .map_or(u64::MAX, |limit| limit.saturating_add(1));
        let operation = FileOperation::Read {
            path: self.relative_bytes(path)?,
            offset: options.offset,
            length: options.length.min(max),
        };
        Ok(FileReader {
            job: self.begin(path, operation).await?,
            asked: options.length,
            left: options.limit,
            limit: options.limit.unwrap_or(u64::MAX),
            unread: Bytes::new(),
            failed: false,
        })
    }
}

/// Reads a file of a guest piece by piece.
///
/// The guest sends only as fast as the pieces are read. Dropping the reader
/// cancels the transfer.
#[derive(Debug)]
pub struct FileReader {
    job: Job,
    /// How many of the requested bytes are missing.
    asked: u64,
    /// How many bytes the limit still allows.
    left: Option<u64>,
    limit: u64,
    /// The rest of the last piece, for `AsyncRead`.
    unread: Bytes,
    failed: bool,
}

event_stream!(FileReader, Bytes);

impl FileReader {
    /// Returns the next piece, or `None` at the end.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, or not all of it;
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        poll_fn(|context| self.poll_event(context)).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        if !self.unread.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.unread))));
        }
        let bytes = ready!(self.job.poll_bytes(context))?;
        if let Some(bytes) = &bytes {
            self.count(bytes)?;
        }
        Poll::Ready(Ok(bytes))
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

/// An error of the guest is reported as [`io::ErrorKind::Other`] with the
/// [`Error`] as its source, a lost link as
/// [`io::ErrorKind::ConnectionAborted`].
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
            match ready!(self.poll_event(context)) {
                Ok(None) => return Poll::Ready(Ok(())),
                Ok(Some(bytes)) => self.unread = bytes,
                Err(error) => {
                    self.failed = true;
                    let kind = match error {
                        Error::Gone(_) | Error::Transport(_) => io::ErrorKind::ConnectionAborted,
                        _ => io::ErrorKind::Other,
                    };
                    return Poll::Ready(Err(io::Error::new(kind, error)));
                }
            }
        }
        let count = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..count]);
        self.unread.advance(count);
        Poll::Ready(Ok(()))
    }
}
