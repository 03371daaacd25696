use bytes::Bytes;
use vmcell_wire::{
    Channel, Request,
    service::{LogStart, Logs, Service as Wire},
};

use super::{ServiceError, ServiceStatus};
use crate::{
    error::Error,
    printable,
    process::Command,
    session::{Closing, Stream, StreamEvent, WINDOW},
    vm::Vm,
};

/// What is wanted of the log of a service: its last
/// [200 lines](Self::DEFAULT_TAIL), unless said otherwise. Made by
/// [`Service::logs`](super::Service::logs).
///
/// The log is all that the service has printed, to both outputs and in all its
/// runs, in the order in which it came. The guest keeps
/// [so much](super::ServiceSpec::log_limit) of its end.
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

/// A log, piece by piece. Dropping it changes nothing for the service, and a
/// reader that is slow never makes it wait: bytes that were dropped before they
/// could be read are told.
///
/// A link that breaks is made anew, and the log goes on where it was.
#[derive(Debug)]
pub struct LogStream {
    stream: Stream,
    vm: Vm,
    name: String,
    /// Bytes that were wanted and are not kept any more, until it is told.
    missing: u64,
    status: Option<ServiceStatus>,
}

/// A piece of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogEvent {
    /// What the service has printed.
    Bytes {
        /// The offset of the first of them, counted from the first byte that
        /// the service ever printed.
        offset: u64,
        /// Any number of them, not by lines.
        bytes: Bytes,
    },
    /// Bytes that were dropped before they could be read. What comes next stood
    /// behind them.
    Dropped {
        /// How many.
        bytes: u64,
    },
}

impl LogsRequest {
    /// How many lines are wanted if nothing is said.
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

    /// The last so many lines. One that is not finished counts.
    pub fn tail(mut self, lines: u32) -> Self {
        self.from = LogStart::Lines(lines);
        self
    }

    /// All that is kept.
    pub fn all(self) -> Self {
        self.since(0)
    }

    /// What stands at this offset and behind it, counted from the first byte
    /// that the service ever printed.
    pub fn since(mut self, offset: u64) -> Self {
        self.from = LogStart::Offset(offset);
        self
    }

    /// Whether the [stream](Self::stream) goes on with what is printed later,
    /// until the service is over. It goes on over restarts.
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    /// Reads it piece by piece.
    ///
    /// # Errors
    /// [`ServiceError::Unknown`] if there is no such service, [`Error::Gone`]
    /// if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn stream(self) -> Result<LogStream, Error> {
        let logs = Logs {
            name: &self.name,
            from: self.from,
            follow: self.follow,
            window: WINDOW,
        };
        let mut stream = self.vm.open(&Request::Service(Wire::Logs(logs)))?;
        let start = match self.vm.explained(stream.next_except_output().await).await? {
            StreamEvent::Attached(attached) => attached.stdout,
            StreamEvent::Closed(Closing::Failed(failed)) => {
                return Err(ServiceError::of_other(failed, &self.name).into());
            }
            _ => return Err(Error::unexpected_reply()),
        };
        Ok(LogStream {
            stream,
            vm: self.vm,
            name: self.name,
            missing: match self.from {
                LogStart::Offset(wanted) => start.saturating_sub(wanted),
                LogStart::Lines(_) => 0,
            },
            status: None,
        })
    }

    /// What there is now, as it was printed. It never follows, and is at most
    /// [so long](Self::MAX_COLLECTED).
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

    /// As [`bytes`](Self::bytes), as text that is safe to print: see
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

impl LogStream {
    /// What comes next. None when that was all: of a log that is followed, when
    /// the service is over.
    ///
    /// # Errors
    /// [`Error::Gone`] if the VM ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<LogEvent>, Error> {
        if self.status.is_some() {
            return Ok(None);
        }
        if self.missing > 0 {
            let bytes = std::mem::take(&mut self.missing);
            return Ok(Some(LogEvent::Dropped { bytes }));
        }
        match self.vm.explained(self.stream.next().await).await? {
            StreamEvent::Data(_, bytes) => {
                let behind = self.stream.offset(Channel::Stdout);
                // A usize fits.
                let offset = behind.saturating_sub(bytes.len() as u64);
                Ok(Some(LogEvent::Bytes { offset, bytes }))
            }
            StreamEvent::Gap(_, bytes) => Ok(Some(LogEvent::Dropped { bytes })),
            StreamEvent::Closed(Closing::Service(state)) => {
                self.status = Some(ServiceStatus::from_guest(*state));
                Ok(None)
            }
            StreamEvent::Closed(Closing::Failed(failed)) => {
                Err(ServiceError::of_other(failed, &self.name).into())
            }
            _ => Err(Error::unexpected_reply()),
        }
    }

    /// The offset of the byte that comes next.
    pub fn offset(&self) -> u64 {
        self.stream.offset(Channel::Stdout)
    }

    /// How the service was when the log had come to its end.
    pub fn status(&self) -> Option<&ServiceStatus> {
        self.status.as_ref()
    }
}
