use std::str::FromStr;

use super::{LogPatternError, Probe, log_pattern};

/// Why a text is not a valid [`Probe`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeParseError {
    /// It does not begin with a known kind.
    #[error(
        "{0:?} is not a probe: use tcp:PORT, file:/PATH, unix:/PATH, http:PORT/PATH, cmd:LINE or log:REGEX"
    )]
    UnknownKind(String),
    /// The port is not a valid port number.
    #[error("{0:?} is not a port: use 1 to 65535")]
    BadPort(String),
    /// The path is not absolute.
    #[error("{0:?} is not an absolute path: begin it with /")]
    NotAbsolute(String),
    /// Nothing follows the kind.
    #[error("{0:?} has nothing after the colon: use cmd:LINE or log:REGEX")]
    Empty(String),
    /// The regular expression of a log line is not valid.
    #[error("{pattern:?} cannot be the pattern of a log probe: {reason}")]
    BadPattern {
        /// The regular expression.
        pattern: String,
        /// Why.
        reason: LogPatternError,
    },
}

impl FromStr for Probe {
    type Err = ProbeParseError;

    /// Parses a probe as written on a command line:
    ///
    /// | text | probe |
    /// |---|---|
    /// | `tcp:8080` | [`Probe::tcp`] |
    /// | `file:/run/ready` | [`Probe::file`] |
    /// | `unix:/run/web.sock` | [`Probe::unix`] |
    /// | `http:8080/health`, `http:8080` | [`Probe::http`] |
    /// | `cmd:test -s /tmp/pid` | [`Probe::shell`] |
    /// | `log:listening on .*:80$` | [`Probe::log`] |
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || ProbeParseError::UnknownKind(text.to_owned());
        let (kind, rest) = text.split_once(':').ok_or_else(unknown)?;
        Ok(match kind {
            "tcp" => Self::tcp(port(rest)?),
            "file" => Self::file(absolute(rest)?),
            "unix" => Self::unix(absolute(rest)?),
            "http" => {
                let path = rest.find('/').unwrap_or(rest.len());
                let (digits, path) = rest.split_at(path);
                let path = if path.is_empty() { "/" } else { path };
                Self::http(port(digits)?, path).into()
            }
            "cmd" | "log" if rest.is_empty() => {
                return Err(ProbeParseError::Empty(text.to_owned()));
            }
            "cmd" => Self::shell(rest),
            "log" => match log_pattern::compile(rest) {
                Ok(_) => Self::log(rest),
                Err(reason) => {
                    let pattern = rest.to_owned();
                    return Err(ProbeParseError::BadPattern { pattern, reason });
                }
            },
            _ => return Err(unknown()),
        })
    }
}

fn port(text: &str) -> Result<u16, ProbeParseError> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(ProbeParseError::BadPort(text.to_owned())),
    }
}

fn absolute(text: &str) -> Result<&str, ProbeParseError> {
    match text.starts_with('/') {
        true => Ok(text),
        false => Err(ProbeParseError::NotAbsolute(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Probe, ProbeParseError> {
        text.parse()
    }

    #[test]
    fn each_kind_has_its_word() {
        assert_eq!(parse("tcp:8080"), Ok(Probe::tcp(8080)));
        assert_eq!(parse("file:/run/a:b"), Ok(Probe::file("/run/a:b")));
        assert_eq!(parse("unix:/run/s"), Ok(Probe::unix("/run/s")));
        assert_eq!(parse("http:80"), Ok(Probe::http(80, "/").into()));
        assert_eq!(parse("http:80/a/b?c"), Ok(Probe::http(80, "/a/b?c").into()));
        assert_eq!(parse("log:on :80$"), Ok(Probe::log("on :80$")));
        assert_eq!(
            parse("cmd:test -s /a"),
            Ok(Probe::command(["/bin/sh", "-c", "test -s /a"]))
        );
    }

    #[test]
    fn what_is_no_probe_says_what_one_is() {
        for text in ["", "8080", "udp:1", "TCP:1", ":", "tcp"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error, ProbeParseError::UnknownKind(text.to_owned()));
            assert!(error.to_string().contains("tcp:PORT"), "{error}");
        }
        for text in [
            "tcp:0",
            "tcp:65536",
            "tcp:",
            "tcp:http",
            "http:/x",
            "tcp:-1",
        ] {
            assert!(matches!(parse(text), Err(ProbeParseError::BadPort(_))));
        }
        for text in ["file:", "file:ready", "unix:run/x"] {
            assert!(matches!(parse(text), Err(ProbeParseError::NotAbsolute(_))));
        }
        let error = parse("log:on (80").unwrap_err();
        assert!(matches!(error, ProbeParseError::BadPattern { .. }));
        let text = error.to_string();
        assert!(text.contains("character 4: unclosed group"), "{text}");
        for text in ["cmd:", "log:"] {
            assert_eq!(parse(text), Err(ProbeParseError::Empty(text.to_owned())));
        }
    }
}
