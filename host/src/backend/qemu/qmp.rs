//! A client of QEMU's monitor protocol, QMP: JSON objects, one on each line.
//!
//! It is written here because the crates for it contain types for QEMU's whole schema,
//! and only a few commands are used.

use std::{
    io::{self, BufRead as _, BufReader, IoSlice, Read as _, Write as _},
    mem::MaybeUninit,
    os::{fd::BorrowedFd, unix::net::UnixStream},
    time::Duration,
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::printable;

/// A connection to the monitor of a QEMU. Every error is a text for people.
#[derive(Debug)]
pub(super) struct Qmp {
    socket: BufReader<UnixStream>,
    /// From its greeting, which precedes all else.
    version: Option<QemuVersion>,
    /// Whether the monitor has left the mode in which it accepts no commands, and
    /// sends no events.
    is_ready: bool,
    /// The last status of a migration that QEMU has reported.
    migration: Option<String>,
}

/// How long QEMU may take to reply.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest line that is read. QEMU may be under the control of its guest.
const MAX_LINE: u64 = 1 << 20;

/// How many lines may precede a reply. Events are rare.
const MAX_EVENTS: usize = 10_000;

/// A line of the monitor.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "QMP")]
    greeting: Option<Greeting>,
    #[serde(rename = "return")]
    result: Option<Value>,
    error: Option<QmpError>,
    event: Option<String>,
    #[serde(default)]
    data: EventData,
}

#[derive(Deserialize)]
struct Greeting {
    version: QemuVersion,
}

/// The version of a QEMU, and the name of its build.
#[derive(Clone, Debug, Default, Deserialize)]
struct QemuVersion {
    #[serde(default)]
    qemu: VersionNumbers,
    #[serde(default)]
    package: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct VersionNumbers {
    major: u32,
    minor: u32,
    micro: u32,
}

#[derive(Deserialize)]
struct QmpError {
    desc: String,
}

#[derive(Default, Deserialize)]
struct EventData {
    status: Option<String>,
}

impl Qmp {
    /// Creates it on a socket whose other end is the monitor. Nothing is sent yet.
    pub(super) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_read_timeout(Some(REPLY_TIMEOUT))?;
        socket.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Self {
            socket: BufReader::new(socket),
            version: None,
            is_ready: false,
            migration: None,
        })
    }

    /// Executes a command and waits for its reply.
    pub(super) fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, String> {
        self.negotiate()?;
        self.send(command, arguments, None)?;
        self.reply()
    }

    /// Same, for a command that takes a descriptor.
    pub(super) fn execute_with(
        &mut self,
        command: &str,
        arguments: Value,
        descriptor: BorrowedFd<'_>,
    ) -> Result<Value, String> {
        self.negotiate()?;
        self.send(command, arguments, Some(descriptor))?;
        self.reply()
    }

    /// Returns QEMU's version and the name of its build: `7.2.22 (Debian …)`.
    pub(super) fn version(&mut self) -> Result<String, String> {
        self.negotiate()?;
        let QemuVersion { qemu, package } = self.version.clone().unwrap_or_default();
        let numbers = format!("{}.{}.{}", qemu.major, qemu.minor, qemu.micro);
        let package = printable(package.as_bytes()).into_owned();
        Ok(match package.is_empty() {
            true => numbers,
            false => format!("{numbers} ({package})"),
        })
    }

    /// Waits until a migration that was started has completed.
    pub(super) fn migrated(&mut self) -> Result<(), String> {
        for _ in 0..MAX_EVENTS {
            match self.migration.as_deref() {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => return Err("QEMU reports no reason".to_owned()),
                _ => {}
            }
            self.line()?;
        }
        Err("QEMU does not complete it".to_owned())
    }

    /// Forgets the status of the migration before.
    pub(super) fn expect_migration(&mut self) {
        self.migration = None;
    }

    fn negotiate(&mut self) -> Result<(), String> {
        if !self.is_ready {
            self.send("qmp_capabilities", Value::Null, None)?;
            self.reply()?;
            self.is_ready = true;
        }
        Ok(())
    }

    fn send(
        &mut self,
        command: &str,
        arguments: Value,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), String> {
        let mut request = json!({ "execute": command });
        if let (false, Some(request)) = (arguments.is_null(), request.as_object_mut()) {
            request.insert("arguments".to_owned(), arguments);
        }
        let line = format!("{request}\n");
        let socket = self.socket.get_mut();
        let sent = match descriptor {
            None => socket.write_all(line.as_bytes()),
            Some(descriptor) => send_with_descriptor(socket, line.as_bytes(), descriptor),
        };
        sent.map_err(|error| format!("QEMU does not read commands: {error}"))
    }

    /// Reads up to the reply, past the greeting and events.
    fn reply(&mut self) -> Result<Value, String> {
        for _ in 0..MAX_EVENTS {
            match self.line()? {
                Line {
                    error: Some(error), ..
                } => return Err(printable(error.desc.as_bytes()).into_owned()),
                Line {
                    result: Some(result),
                    ..
                } => return Ok(result),
                Line { .. } => {}
            }
        }
        Err("QEMU sends events and no reply".to_owned())
    }

    /// Reads a line, and remembers what it says about the version and a migration.
    fn line(&mut self) -> Result<Line, String> {
        let mut line = Vec::new();
        let read = self
            .socket
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut line);
        match read {
            Err(error) => return Err(format!("QEMU does not reply: {error}")),
            Ok(_) if line.last() != Some(&b'\n') => {
                return Err("QEMU's reply is cut off".to_owned());
            }
            Ok(_) => {}
        }
        let mut line: Line = serde_json::from_slice(&line)
            .map_err(|error| format!("QEMU's reply is malformed: {error}"))?;
        if let Some(greeting) = line.greeting.take() {
            self.version = Some(greeting.version);
        }
        if line.event.as_deref() == Some("MIGRATION") {
            self.migration = line.data.status.take();
        }
        Ok(line)
    }
}

/// Sends bytes with a descriptor: unix(7).
fn send_with_descriptor(
    socket: &mut UnixStream,
    bytes: &[u8],
    descriptor: BorrowedFd<'_>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    let slices = [IoSlice::new(bytes)];
    let sent = sendmsg(&*socket, &slices, &mut ancillary, SendFlags::NOSIGNAL)?;
    // The descriptor went with the first byte.
    socket.write_all(bytes.get(sent..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::{os::fd::AsFd as _, thread};

    use super::*;

    const GREETING: &str = r#"{"QMP": {"version": {}, "capabilities": []}}"#;

    /// Returns a client of a monitor that sends these lines, each but the first after
    /// a command. Also returns the commands.
    fn monitor(lines: Vec<String>) -> (Qmp, thread::JoinHandle<Vec<String>>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let serving = thread::spawn(move || {
            let mut commands = Vec::new();
            let mut reader = BufReader::new(theirs.try_clone().unwrap());
            for (number, line) in lines.iter().enumerate() {
                let mut command = String::new();
                if number > 0 && reader.read_line(&mut command).unwrap() == 0 {
                    break;
                }
                commands.push(command);
                if writeln!(&theirs, "{line}").is_err() {
                    break;
                }
            }
            commands.split_off(1)
        });
        (Qmp::new(ours).unwrap(), serving)
    }

    #[test]
    fn commands_follow_the_negotiation_and_events_are_skipped() {
        let event = r#"{"timestamp": {"seconds": 1}, "event": "STOP"}"#;
        let lines = [
            GREETING.to_owned(),
            r#"{"return": {}}"#.to_owned(),
            format!("{event}\n{event}\n{}", r#"{"return": {}}"#),
            r#"{"return": {}}"#.to_owned(),
        ];
        let (mut qmp, serving) = monitor(lines.into());
        qmp.execute("stop", Value::Null).unwrap();
        qmp.execute("cont", json!({ "a": 1 })).unwrap();
        drop(qmp);
        assert_eq!(
            serving.join().unwrap(),
            [
                "{\"execute\":\"qmp_capabilities\"}\n",
                "{\"execute\":\"stop\"}\n",
                "{\"arguments\":{\"a\":1},\"execute\":\"cont\"}\n"
            ]
        );
    }

    #[test]
    fn what_qemu_refuses_is_its_error_made_safe_to_print() {
        let lines = [
            GREETING.to_owned(),
            r#"{"return": {}}"#.to_owned(),
            r#"{"error": {"class": "GenericError", "desc": "no \u001b[31m"}}"#.to_owned(),
        ];
        let (mut qmp, _serving) = monitor(lines.into());
        let error = qmp.execute("stop", Value::Null).unwrap_err();
        assert_eq!(error, printable(b"no \x1b[31m"));
    }

    #[test]
    fn a_monitor_that_talks_nonsense_is_an_error() {
        let long = "x".repeat(MAX_LINE as usize + 1);
        for nonsense in ["hello", "[1]", "", &long] {
            let (mut qmp, serving) = monitor(vec![nonsense.to_owned()]);
            qmp.execute("stop", Value::Null).unwrap_err();
            drop(qmp);
            serving.join().unwrap();
        }
    }

    #[test]
    fn the_version_is_in_the_greeting() {
        let version = r#"{"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": "Debian"}"#;
        let lines = [
            format!(r#"{{"QMP": {{"version": {version}, "capabilities": []}}}}"#),
            r#"{"return": {}}"#.to_owned(),
        ];
        let (mut qmp, _serving) = monitor(lines.into());
        assert_eq!(qmp.version().as_deref(), Ok("7.2.22 (Debian)"));
    }

    #[test]
    fn a_migration_is_over_when_its_event_says_so_even_before_the_reply() {
        let event = |status| {
            let data = json!({ "status": status });
            json!({ "event": "MIGRATION", "data": data }).to_string()
        };
        for (status, is_completed) in [("completed", true), ("failed", false)] {
            let lines = [
                GREETING.to_owned(),
                r#"{"return": {}}"#.to_owned(),
                format!("{}\n{}", event("active"), r#"{"return": {}}"#),
                event(status),
            ];
            let (mut qmp, _serving) = monitor(lines.into());
            let (ours, _theirs) = UnixStream::pair().unwrap();
            qmp.execute_with("getfd", Value::Null, ours.as_fd())
                .unwrap();
            // The monitor sends the last event after another command.
            qmp.send("x", Value::Null, None).unwrap();
            assert_eq!(qmp.migrated().is_ok(), is_completed);
        }
    }

    #[test]
    fn a_monitor_that_hangs_up_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        Qmp::new(ours)
            .unwrap()
            .execute("stop", Value::Null)
            .unwrap_err();
    }
}
