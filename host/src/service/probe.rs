use std::{
    ffi::OsString,
    ops::RangeInclusive,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use vmcell_wire::{
    PackedStringsBuf,
    limits::MAX_PATH,
    service::{Http, Probe as Wire, log_pattern::LogPatternBuf},
};

use super::{ServiceError, log_pattern};
use crate::error::Error;

/// A check whether a service works. The guest's agent performs it, inside the
/// guest.
///
/// It can be parsed from a string: see [`Probe::from_str`].
///
/// ```
/// use vmcell::service::Probe;
///
/// assert_eq!("tcp:8080".parse::<Probe>()?, Probe::tcp(8080));
/// assert_eq!("http:80/health".parse::<Probe>()?, Probe::http(80, "/health").into());
/// # Ok::<(), vmcell::service::ProbeParseError>(())
/// ```
///
/// [`Probe::from_str`]: std::str::FromStr::from_str
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Probe(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    File(PathBuf),
    Tcp(u16),
    Unix(PathBuf),
    Http(HttpProbe),
    Command(Vec<OsString>),
    Log(String),
}

/// A [`Probe`] that sends an HTTP request. Created by [`Probe::http`].
///
/// ```
/// use vmcell::service::{Probe, Readiness};
///
/// let probe = Probe::http(8080, "/health")
///     .status(200..=200)
///     .body_contains("\"ok\"");
/// let readiness = Readiness::from(probe);
/// # let _ = readiness;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct HttpProbe {
    port: u16,
    path: String,
    status: RangeInclusive<u16>,
    body: Vec<u8>,
}

impl Probe {
    /// Succeeds when this absolute path exists. The agent is notified by the
    /// guest's kernel and notices it at once.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Kind::File(path.into()))
    }

    /// Succeeds when this port of the guest's loopback accepts a connection.
    pub fn tcp(port: u16) -> Self {
        Self(Kind::Tcp(port))
    }

    /// Succeeds when the Unix socket at this absolute path accepts a
    /// connection.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Unix(path.into()))
    }

    /// Succeeds when an HTTP server on the guest's loopback answers a GET for
    /// this path with a status from 200 to 399, or one that
    /// [`HttpProbe::status`] sets. The path begins with `/`.
    pub fn http(port: u16, path: impl Into<String>) -> HttpProbe {
        HttpProbe {
            port,
            path: path.into(),
            status: 200..=399,
            body: Vec::new(),
        }
    }

    /// Succeeds when this program, with these arguments, exits with 0. It runs
    /// with the directory, user and environment of the service. It and all its
    /// descendants are killed when an attempt is over.
    pub fn command(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self(Kind::Command(argv.into_iter().map(Into::into).collect()))
    }

    /// Same as [`command`](Self::command), for a line that `/bin/sh -c` runs.
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self::command(["/bin/sh".into(), "-c".into(), line.into()])
    }

    /// Succeeds when a line that this run of the service prints matches a
    /// regular expression of at most 1 KiB, anywhere in the line. The syntax is
    /// that of the crate `regex` without Unicode support: it matches bytes. Of
    /// the assertions there are `^`, `$`, `\A`, `\z`, `\b` and `\B`.
    ///
    /// The expression is compiled to at most 1000 instructions when the service
    /// is started; one that is invalid or too large is rejected with
    /// [`ServiceError::BadLogPattern`]. A byte or class is an instruction, and a
    /// repetition like `{20}` repeats those of its expression.
    ///
    /// The agent matches each line as it arrives, and only its first 4 KiB.
    /// Matching takes linear time whatever the expression. No line is missed:
    /// until it is ready, a service that prints faster than that is blocked.
    pub fn log(pattern: impl Into<String>) -> Self {
        Self(Kind::Log(pattern.into()))
    }

    /// Validates the probe and converts it for the wire.
    pub(super) fn prepare(&self) -> Result<PreparedProbe<'_>, Error> {
        Ok(PreparedProbe::Complete(match &self.0 {
            Kind::File(path) => Wire::File {
                path: checked_path(path)?,
            },
            Kind::Tcp(port) => Wire::Tcp {
                port: checked_port(*port)?,
            },
            Kind::Unix(path) => Wire::Unix {
                path: checked_path(path)?,
            },
            Kind::Http(http) => Wire::Http(http.as_wire()?),
            Kind::Command(argv) => {
                if argv.first().is_none_or(|program| program.is_empty()) {
                    return Err(invalid("a probe command names no program"));
                }
                let mut packed = PackedStringsBuf::new();
                for word in argv {
                    if !packed.push(word.as_bytes()) {
                        return Err(invalid("a probe command holds a zero byte"));
                    }
                }
                return Ok(PreparedProbe::Command(packed));
            }
            Kind::Log(pattern) => {
                let compiled = log_pattern::compile(pattern);
                let compiled = compiled.map_err(|reason| ServiceError::BadLogPattern {
                    pattern: pattern.clone(),
                    reason,
                })?;
                return Ok(PreparedProbe::Log(compiled));
            }
        }))
    }

    pub(super) fn is_log(&self) -> bool {
        matches!(self.0, Kind::Log(_))
    }
}

/// A valid probe, with what it needs on the wire.
pub(super) enum PreparedProbe<'a> {
    Complete(Wire<'a>),
    Command(PackedStringsBuf),
    Log(LogPatternBuf),
}

impl PreparedProbe<'_> {
    pub(super) fn as_wire(&self) -> Wire<'_> {
        match self {
            Self::Complete(probe) => *probe,
            Self::Command(argv) => Wire::Command {
                argv: argv.as_packed(),
            },
            Self::Log(pattern) => Wire::Log {
                pattern: pattern.as_pattern(),
            },
        }
    }
}

impl HttpProbe {
    /// Sets the statuses that count as success.
    pub fn status(mut self, statuses: RangeInclusive<u16>) -> Self {
        self.status = statuses;
        self
    }

    /// Sets a text that the first 64 KiB of the response body must contain.
    pub fn body_contains(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.body = text.into();
        self
    }

    fn as_wire(&self) -> Result<Http<'_>, Error> {
        let is_forbidden = |byte: u8| byte <= b' ' || byte == 0x7f;
        let port = checked_port(self.port)?;
        if !self.path.starts_with('/') || self.path.bytes().any(is_forbidden) {
            return Err(invalid(&format!(
                "{:?} is not an HTTP path: it begins with / and contains no spaces",
                self.path
            )));
        }
        if self.status.is_empty() {
            return Err(invalid("the range of statuses is empty"));
        }
        Ok(Http {
            port,
            path: &self.path,
            min_status: *self.status.start(),
            max_status: *self.status.end(),
            body: &self.body,
        })
    }
}

impl From<HttpProbe> for Probe {
    fn from(http: HttpProbe) -> Self {
        Self(Kind::Http(http))
    }
}

fn checked_port(port: u16) -> Result<u16, Error> {
    match port {
        0 => Err(invalid("0 is not a port: use 1 to 65535")),
        port => Ok(port),
    }
}

fn checked_path(path: &Path) -> Result<&[u8], Error> {
    let bytes = path.as_os_str().as_bytes();
    if path.is_absolute() && bytes.len() < MAX_PATH && !bytes.contains(&0) {
        return Ok(bytes);
    }
    Err(invalid(&format!(
        "{path:?} is not a path for a probe: use an absolute path of less than {MAX_PATH} bytes without zero bytes"
    )))
}

fn invalid(text: &str) -> Error {
    Error::Invalid(text.to_owned())
}
