use std::{
    future::poll_fn,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use vmcell_wire::{
    Channel, Outcome, Request,
    service::{LogStart, ReadLog, ServiceRequest},
};

use super::{ServiceError, ServiceStatus};
use crate::{
    error::Error,
    event_stream::event_stream,
    printable,
    process::Command,
    session::{StreamEvent, WINDOW},
    vm::{Vm, VmStream},
};

/// A request for the log of a service, by default its last [200
/// lines](Self::DEFAULT_TAIL). Created by
/// [`Service::logs`](super::Service::logs).
///
/// The log is everything that the service has printed, to both outputs and in
/// all its runs, in order of arrival. The guest keeps only the [newest
/// bytes](super::ServiceSpec::log_limit) of it.
///
/// ```no_run
/// # async fn example(web: vmcell::service::Service) -> Result<(), vmcell::Error> {
/// println!("{}", web.logs().tail(10).text().await?);
///
/// let mut log = web.logs().all().follow(true).stream().await?;
/// while let Some(event) = log.next().await? {
///     println!("{event:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LogsRequest {
    vm: Vm,
    name: String,
    from: LogStart,
    follow: bool,
}

/// A stream of a log. Dropping it does not affect the service, and a slow
/// reader never blocks it: bytes that were dropped before they could be read
/// are reported.
///
/// If the link breaks, it is re-established and the log continues where it was.
#[derive(Debug)]
pub struct LogStream {
    stream: VmStream,
    name: String,
    /// Requested bytes that are no longer kept, until they are reported.
    missing: u64,
    status: Option<ServiceStatus>,
    failed: bool,
}

/// An event of a [`LogStream`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogEvent {
    /// Output of the service.
    Bytes {
        /// The offset of the first byte, counted from the first byte that the
        /// service ever printed.
        offset: u64,
        /// The bytes, not split into lines.
        bytes: Bytes,
    },
    /// Bytes were dropped before they could be read. The next bytes come after
    /// them.
    Dropped {
        /// How many.
        bytes: u64,
    },
}

impl LogsRequest {
    /// The default number of lines.
    pub const DEFAULT_TAIL: u32 = 200;

    /// The most bytes that [`bytes`](Self::bytes) and [`text`](Self::text)
    /// read: twice what a guest keeps of a log.
    pub const MAX_COLLECTED: usize = 2 * Command::MAX_KEPT as usize;

    pub(crate) fn new(vm: Vm, name: String) -> Self {
        Self {
            vm,
            name,
            from: LogStart::Lines(Self::DEFAULT_TAIL),
            follow: false,
        }
    }

    /// Requests the last `lines` lines. An unfinished line counts.
    pub fn tail(mut self, lines: u32) -> Self {
        self.from = LogStart::Lines(lines);
        self
    }

    /// Requests everything that is kept.
    pub fn all(self) -> Self {
        self.since(0)
    }

    /// Requests the log from this offset on, counted from the first byte that
    /// the service ever printed.
    pub fn since(mut self, offset: u64) -> Self {
        self.from = LogStart::Offset(offset);
        self
    }

    /// Sets whether the [stream](Self::stream) continues with what is printed
    /// later, until the service finishes. It continues across restarts.
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    /// Opens a stream of the log.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if there is no such service, [`Error::Gone`]
    /// if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn stream(self) -> Result<LogStream, Error> {
        let logs = ReadLog {
            name: &self.name,
            from: self.from,
            follow: self.follow,
            window: WINDOW,
        };
        let request = Request::Service(ServiceRequest::ReadLog(logs));
        let mut stream = VmStream::new(self.vm.open(&request)?, self.vm);
        let start = match stream.next_except_output().await? {
            StreamEvent::Attached(attached) => attached.stdout,
            StreamEvent::Closed(closing) => {
                return Err(ServiceError::refusal(&closing.outcome(), &self.name));
            }
            _ => return Err(Error::unexpected_reply()),
        };
        Ok(LogStream {
            stream,
            name: self.name,
            missing: match self.from {
                LogStart::Offset(wanted) => start.saturating_sub(wanted),
                LogStart::Lines(_) => 0,
            },
            status: None,
            failed: false,
        })
    }

    /// Returns the current log as it was printed, at most
    /// [`MAX_COLLECTED`](Self::MAX_COLLECTED) bytes. Ignores
    /// [`follow`](Self::follow).
    ///
    /// # Errors
    /// [`Error::ResultLimit`] if it is longer, and see [`stream`](Self::stream).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn bytes(self) -> Result<Vec<u8>, Error> {
        let mut stream = self.follow(false).stream().await?;
        let mut all = Vec::new();
        while let Some(event) = stream.next().await? {
            if let LogEvent::Bytes { bytes, .. } = event {
                all.extend_from_slice(&bytes);
            }
            if all.len() > Self::MAX_COLLECTED {
                return Err(Error::ResultLimit {
                    what: "the log",
                    limit: Self::MAX_COLLECTED as u64,
                    unit: "bytes",
                    remedy: "use `stream`, which returns it piece by piece",
                });
            }
        }
        Ok(all)
    }

    /// Same as [`bytes`](Self::bytes), as text that is safe to print: see
    /// [`printable`](crate::printable).
    ///
    /// # Errors
    /// See [`bytes`](Self::bytes).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn text(self) -> Result<String, Error> {
        Ok(printable(&self.bytes().await?).into_owned())
    }
}

event_stream!(LogStream, LogEvent);

impl LogStream {
    /// Waits for the next event. Returns `None` at the end of the log, which is
    /// when the service finishes if the log is followed.
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<LogEvent>, Error> {
        poll_fn(|context| self.poll_event(context)).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<LogEvent>, Error>> {
        if self.status.is_some() {
            return Poll::Ready(Ok(None));
        }
        if self.missing > 0 {
            let bytes = std::mem::take(&mut self.missing);
            return Poll::Ready(Ok(Some(LogEvent::Dropped { bytes })));
        }
        let event = ready!(self.stream.poll_next(context))?;
        Poll::Ready(self.on_event(event))
    }

    fn on_event(&mut self, event: StreamEvent) -> Result<Option<LogEvent>, Error> {
        match event {
            StreamEvent::Data(_, bytes) => {
                let behind = self.stream.offset(Channel::Stdout);
                // A usize fits.
                let offset = behind.saturating_sub(bytes.len() as u64);
                Ok(Some(LogEvent::Bytes { offset, bytes }))
            }
            StreamEvent::Gap(_, bytes) => Ok(Some(LogEvent::Dropped { bytes })),
            StreamEvent::Closed(closing) => match closing.outcome() {
                Outcome::Service(state) => {
                    let status = ServiceStatus::from_wire(&state);
                    self.status = Some(status.ok_or_else(Error::unexpected_reply)?);
                    Ok(None)
                }
                other => Err(ServiceError::refusal(&other, &self.name)),
            },
            _ => Err(Error::unexpected_reply()),
        }
    }

    /// Returns the offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.stream.offset(Channel::Stdout)
    }

    /// Returns the status of the service when the log ended; `None` before.
    pub fn status(&self) -> Option<&ServiceStatus> {
        self.status.as_ref()
    }
}
