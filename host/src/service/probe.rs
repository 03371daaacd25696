use std::{
    ffi::OsString,
    ops::RangeInclusive,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use vmcell_wire::{
    PackedBuf,
    limits::MAX_PATH,
    service::{Http, Probe as Wire},
};

use crate::error::Error;

/// Something that tells whether a service does its work. The guest's agent
/// looks, so that what the host is told is true in the guest.
///
/// Programs of people write it as a word, see [`Probe::from_str`].
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

/// A [`Probe`] that asks a web server for a page. Made by [`Probe::http`].
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
    /// Whether there is something with this absolute path. The guest's kernel
    /// tells of it as soon as it is there.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Kind::File(path.into()))
    }

    /// Whether the guest's loopback takes connections on this port.
    pub fn tcp(port: u16) -> Self {
        Self(Kind::Tcp(port))
    }

    /// Whether the socket with this absolute path takes connections.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Unix(path.into()))
    }

    /// Whether a web server on the guest's loopback answers a GET for this
    /// path, which begins with `/`: with a status from 200 to 399 unless
    /// [said otherwise](HttpProbe::status).
    pub fn http(port: u16, path: impl Into<String>) -> HttpProbe {
        HttpProbe {
            port,
            path: path.into(),
            status: 200..=399,
            body: Vec::new(),
        }
    }

    /// Whether this program, with these arguments, exits with 0. It runs where
    /// and as whom the service does, with its environment; it and all its
    /// descendants are ended when an attempt is over.
    pub fn command(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self(Kind::Command(argv.into_iter().map(Into::into).collect()))
    }

    /// As [`command`](Self::command), for a line that `/bin/sh -c` runs.
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self::command(["/bin/sh".into(), "-c".into(), line.into()])
    }

    /// Whether a line of what this run of the service has printed matches a
    /// regular expression of at most 1 KiB, anywhere in the line. The syntax is
    /// that of the crate `regex`, without what is about characters beyond
    /// ASCII: it works on bytes.
    ///
    /// The agent looks at each line as it comes, and at the first 4 KiB of it.
    /// The time that takes grows with the length of the line and no faster,
    /// whatever the expression. No line is missed: a service that prints faster
    /// is made to wait until it is ready.
    pub fn log(pattern: impl Into<String>) -> Self {
        Self(Kind::Log(pattern.into()))
    }

    /// The words of the command, if it is one, and whether it makes sense.
    pub(super) fn words(&self) -> Result<PackedBuf, Error> {
        let mut words = PackedBuf::new();
        match &self.0 {
            Kind::File(path) | Kind::Unix(path) => check_path(path)?,
            Kind::Tcp(port) => check_port(*port)?,
            Kind::Http(http) => http.check()?,
            Kind::Log(pattern) if pattern.is_empty() => {
                return Err(invalid("a probe for a log line needs a pattern"));
            }
            Kind::Log(_) => {}
            Kind::Command(argv) => {
                if argv.first().is_none_or(|program| program.is_empty()) {
                    return Err(invalid("a probe command names no program"));
                }
                for word in argv {
                    if !words.push(word.as_bytes()) {
                        return Err(invalid("a probe command holds a zero byte"));
                    }
                }
            }
        }
        Ok(words)
    }

    pub(super) fn is_log(&self) -> bool {
        matches!(self.0, Kind::Log(_))
    }

    /// The same as it goes over a link, with its [words](Self::words).
    pub(super) fn as_wire<'a>(&'a self, words: &'a PackedBuf) -> Wire<'a> {
        match &self.0 {
            Kind::File(path) => Wire::File { path: bytes(path) },
            Kind::Tcp(port) => Wire::Tcp { port: *port },
            Kind::Unix(path) => Wire::Unix { path: bytes(path) },
            Kind::Http(http) => Wire::Http(Http {
                port: http.port,
                path: &http.path,
                min_status: *http.status.start(),
                max_status: *http.status.end(),
                body: &http.body,
            }),
            Kind::Command(_) => Wire::Command {
                argv: words.as_packed(),
            },
            Kind::Log(pattern) => Wire::Log { pattern },
        }
    }
}

impl HttpProbe {
    /// Which statuses are a success.
    pub fn status(mut self, statuses: RangeInclusive<u16>) -> Self {
        self.status = statuses;
        self
    }

    /// What must stand somewhere in the first 64 KiB of the answer's body.
    pub fn body_contains(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.body = text.into();
        self
    }

    fn check(&self) -> Result<(), Error> {
        check_port(self.port)?;
        let strange = |byte: u8| byte <= b' ' || byte == 0x7f;
        if !self.path.starts_with('/') || self.path.bytes().any(strange) {
            return Err(invalid(&format!(
                "{:?} is no path of a page: it begins with / and holds no spaces",
                self.path
            )));
        }
        match self.status.is_empty() {
            true => Err(invalid("the range of statuses is empty")),
            false => Ok(()),
        }
    }
}

impl From<HttpProbe> for Probe {
    fn from(http: HttpProbe) -> Self {
        Self(Kind::Http(http))
    }
}

fn check_port(port: u16) -> Result<(), Error> {
    match port {
        0 => Err(invalid("0 is no port: use 1 to 65535")),
        _ => Ok(()),
    }
}

fn check_path(path: &Path) -> Result<(), Error> {
    let bytes = bytes(path);
    if path.is_absolute() && bytes.len() < MAX_PATH && !bytes.contains(&0) {
        return Ok(());
    }
    Err(invalid(&format!(
        "the path of a probe is absolute, has less than {MAX_PATH} bytes and none that is zero: {path:?}"
    )))
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn invalid(text: &str) -> Error {
    Error::Invalid(text.to_owned())
}
