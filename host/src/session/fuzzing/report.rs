use vmcell_wire::{Channel, Outcome};

use crate::session::{LinkError, StreamEvent};

/// What the user of a stream has got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// All other events.
    pub events: Vec<String>,
    /// How it ended.
    pub end: Option<String>,
    /// How many bytes standard output has according to its exit.
    pub exit_bytes: Option<u64>,
    /// How many bytes of standard output were missing.
    pub missing: u64,
    /// The offset of the first byte of standard output.
    pub start: u64,
    /// How many bytes the host accepted for its input.
    pub written: u64,
}

impl StreamReport {
    /// Adds an event. Returns whether it was the last one.
    pub(super) fn add(&mut self, event: Result<StreamEvent, LinkError>) -> bool {
        match event {
            Ok(StreamEvent::Data(Channel::Stderr, bytes)) => self.stderr.extend(&bytes),
            Ok(StreamEvent::Data(_, bytes)) => self.stdout.extend(&bytes),
            Ok(StreamEvent::Gap(channel, bytes)) => {
                let (name, at) = match channel {
                    Channel::Stderr => ("stderr", self.stderr.len()),
                    _ => {
                        self.missing = self.missing.saturating_add(bytes);
                        ("stdout", self.stdout.len())
                    }
                };
                self.events
                    .push(format!("{bytes} bytes of {name} are missing at {at}"));
            }
            Ok(StreamEvent::Closed(closing)) => {
                if let Outcome::Exited(exit) = closing.outcome() {
                    self.exit_bytes = Some(exit.stdout_bytes);
                }
                self.end = Some(format!("{:?}", closing.outcome()));
                return true;
            }
            Err(error) => {
                self.end = Some(error.to_string());
                return true;
            }
            Ok(event) => {
                if let StreamEvent::Attached(attached) = &event {
                    self.start = attached.stdout;
                }
                let text = match &event {
                    StreamEvent::Listed(entry) => format!("{:?}", entry.event()),
                    event => format!("{event:?}"),
                };
                self.events.push(text);
            }
        }
        false
    }
}
