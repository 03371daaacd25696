use std::{
    future::poll_fn,
    path::{Path, PathBuf},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::sync::OwnedSemaphorePermit;
use vmcell_wire::{
    Channel, Outcome, WireError,
    files::{
        FileReply,
        record::{self, Piece},
    },
};

use super::FileFailure;
use crate::{
    error::Error,
    session::{Stream, StreamEvent, StreamInput},
    vm::{Vm, VmStream},
};

/// Work on files that runs in the guest. Dropping it cancels it.
#[derive(Debug)]
pub(crate) struct Job {
    stream: VmStream,
    subject: PathBuf,
    reader: record::Reader,
    /// Received bytes that are not decoded yet.
    unread: Bytes,
    is_done: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Job {
    pub(super) fn new(
        vm: Vm,
        stream: Stream,
        subject: &Path,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self {
            stream: VmStream::new(stream, vm),
            subject: subject.to_owned(),
            reader: record::Reader::new(),
            unread: Bytes::new(),
            is_done: false,
            _permit: permit,
        }
    }

    /// Returns its input.
    pub(crate) fn input(&self) -> StreamInput {
        self.stream.input()
    }

    /// Returns the next bytes of its output, or `None` after successful
    /// completion.
    ///
    /// Cancel safe.
    pub(crate) async fn next_bytes(&mut self) -> Result<Option<Bytes>, Error> {
        poll_fn(|context| self.poll_bytes(context)).await
    }

    /// Like [`next_bytes`](Self::next_bytes), as a poll function.
    pub(super) fn poll_bytes(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Error>> {
        if self.is_done {
            return Poll::Ready(Ok(None));
        }
        Poll::Ready(match ready!(self.stream.poll_next(context))? {
            StreamEvent::Data(Channel::Stdout, bytes) => Ok(Some(bytes)),
            StreamEvent::Closed(closing) => match closing.outcome() {
                Outcome::Done => {
                    self.is_done = true;
                    Ok(None)
                }
                Outcome::Failed(failure) => {
                    Err(FileFailure::from_wire(&failure, &self.subject).into())
                }
                _ => Err(Error::unexpected_reply()),
            },
            _ => Err(Error::unexpected_reply()),
        })
    }

    /// Returns the next answer, converted by `with`, or `None` after successful
    /// completion.
    ///
    /// Cancel safe.
    pub(crate) async fn next_answer<T>(
        &mut self,
        mut with: impl FnMut(FileReply<'_>) -> T,
    ) -> Result<Option<T>, Error> {
        poll_fn(|context| self.poll_answer(context, &mut with)).await
    }

    /// Like [`next_answer`](Self::next_answer), as a poll function.
    pub(super) fn poll_answer<T>(
        &mut self,
        context: &mut Context<'_>,
        mut with: impl FnMut(FileReply<'_>) -> T,
    ) -> Poll<Result<Option<T>, Error>> {
        loop {
            let mut input = &self.unread[..];
            let before = input.len();
            let found = match self.reader.next(&mut input).map_err(malformed)? {
                Some(Piece::Message(message)) => {
                    let answer: FileReply<'_> = record::decode(message).map_err(malformed)?;
                    if !answer.is_valid() {
                        return Poll::Ready(Err(Error::unexpected_reply()));
                    }
                    Some(with(answer))
                }
                Some(Piece::Raw(_)) => return Poll::Ready(Err(Error::unexpected_reply())),
                None => None,
            };
            let count = before - input.len();
            self.unread.advance(count);
            if found.is_some() {
                return Poll::Ready(Ok(found));
            }
            match ready!(self.poll_bytes(context))? {
                Some(bytes) => self.unread = bytes,
                None if self.reader.is_between_records() => return Poll::Ready(Ok(None)),
                None => return Poll::Ready(Err(Error::unexpected_reply())),
            }
        }
    }

    /// Waits until it is complete, and returns its single answer.
    pub(crate) async fn single_answer<T>(
        mut self,
        mut with: impl FnMut(FileReply<'_>) -> Option<T>,
    ) -> Result<T, Error> {
        let answer = self.next_answer(&mut with).await?.flatten();
        // A failure after the answer counts too.
        if self.next_answer(|_| ()).await?.is_some() {
            return Err(Error::unexpected_reply());
        }
        answer.ok_or_else(Error::unexpected_reply)
    }

    /// Returns the error for more bytes than the caller's limit.
    pub(super) fn limit_reached(&self, limit: u64) -> Error {
        FileFailure::too_large(&self.subject, limit).into()
    }

    /// Waits until it is complete. It must have no output.
    pub(crate) async fn finish(mut self) -> Result<(), Error> {
        match self.next_bytes().await? {
            None => Ok(()),
            Some(_) => Err(Error::unexpected_reply()),
        }
    }
}

fn malformed(_: WireError) -> Error {
    Error::unexpected_reply()
}
