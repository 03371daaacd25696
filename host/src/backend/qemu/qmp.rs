//! A client of QEMU's monitor protocol, QMP: JSON objects, one on each line.
//!
//! It is written here because the crates for it contain types for QEMU's whole schema,
//! and only a few commands are used.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{backend::VmmControl, error::Error, printable};

/// A connection to the monitor of a QEMU.
#[derive(Debug)]
pub(super) struct Qmp {
    socket: BufReader<UnixStream>,
    /// Whether the monitor has left the mode in which it accepts no commands, and
    /// sends no events.
    is_ready: bool,
}

/// How long QEMU may take to reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest line that is read. QEMU may be under the control of its guest.
const MAX_LINE: u64 = 1 << 20;

/// How many lines may precede a reply. Events are rare.
const MAX_EVENTS: usize = 10_000;

/// A line of the monitor.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "return")]
    result: Option<Value>,
    error: Option<QmpError>,
}

#[derive(Deserialize)]
struct QmpError {
    desc: String,
}

impl Qmp {
    /// Creates it on a socket whose other end is the monitor. Nothing is sent yet.
    pub(super) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_read_timeout(Some(REPLY_TIMEOUT))?;
        socket.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Self {
            socket: BufReader::new(socket),
            is_ready: false,
        })
    }

    /// Executes a command and waits for its reply.
    fn execute(&mut self, command: &str, doing: &'static str) -> Result<(), Error> {
        let failed = |reason| Error::Control { doing, reason };
        if !self.is_ready {
            self.request("qmp_capabilities").map_err(failed)?;
            self.is_ready = true;
        }
        self.request(command).map_err(failed)?;
        Ok(())
    }

    fn request(&mut self, command: &str) -> Result<Value, String> {
        let mut line = json!({ "execute": command }).to_string();
        line.push('\n');
        let sent = self.socket.get_mut().write_all(line.as_bytes());
        sent.map_err(|error| format!("QEMU does not read commands: {error}"))?;
        self.reply()
    }

    /// Reads up to the reply, past the greeting and events.
    fn reply(&mut self) -> Result<Value, String> {
        for _ in 0..MAX_EVENTS {
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
            let line: Line = serde_json::from_slice(&line)
                .map_err(|error| format!("QEMU's reply is malformed: {error}"))?;
            match line {
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
}

impl VmmControl for Qmp {
    fn pause(&mut self) -> Result<(), Error> {
        self.execute("stop", "pause the VM")
    }

    fn resume(&mut self) -> Result<(), Error> {
        self.execute("cont", "resume the VM")
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

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
        qmp.pause().unwrap();
        qmp.resume().unwrap();
        drop(qmp);
        assert_eq!(
            serving.join().unwrap(),
            [
                "{\"execute\":\"qmp_capabilities\"}\n",
                "{\"execute\":\"stop\"}\n",
                "{\"execute\":\"cont\"}\n"
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
        let error = qmp.pause().unwrap_err();
        assert_eq!(error.code(), "control");
        assert_eq!(
            error.to_string(),
            format!(
                "the VMM could not pause the VM: {}",
                printable(b"no \x1b[31m")
            )
        );
    }

    #[test]
    fn a_monitor_that_talks_nonsense_is_an_error() {
        let long = "x".repeat(MAX_LINE as usize + 1);
        for nonsense in ["hello", "[1]", "", &long] {
            let (mut qmp, serving) = monitor(vec![nonsense.to_owned()]);
            let error = qmp.pause().unwrap_err();
            assert_eq!(error.code(), "control", "{error}");
            drop(qmp);
            serving.join().unwrap();
        }
    }

    #[test]
    fn a_monitor_that_hangs_up_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let error = Qmp::new(ours).unwrap().pause().unwrap_err();
        assert_eq!(error.code(), "control", "{error}");
    }
}
