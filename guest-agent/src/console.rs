use core::fmt::{self, Write};

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
};

/// The output for the agent's error messages: the kernel's log, or standard error
/// where the agent has no kernel of its own. The host shows it when a VM does not
/// boot.
pub struct Console {
    output: Option<OwnedFd>,
    /// The log level that a record begins with.
    level: &'static str,
}

/// KERN_CRIT, which the kernel option `quiet` does not hide.
const CRITICAL: &str = "<2>";

impl Console {
    /// Opens the kernel's log, or standard error if there is none.
    pub fn open() -> Self {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::open("/dev/kmsg", flags, Mode::empty()) {
            Ok(log) => Self {
                output: Some(log),
                level: CRITICAL,
            },
            Err(_) => Self::standard_error(),
        }
    }

    /// Uses standard error. If it is closed, messages are lost.
    pub fn standard_error() -> Self {
        Self {
            output: crate::sys::standard_error().ok(),
            level: "",
        }
    }

    /// Creates a console that drops all messages.
    pub fn silent() -> Self {
        Self {
            output: None,
            level: "",
        }
    }

    /// Writes an error message.
    pub fn error(&self, message: fmt::Arguments<'_>) {
        let Some(output) = &self.output else {
            return;
        };
        let mut record = LogRecord::default();
        // A message that is too long is truncated; that is not an error.
        let _ = write!(record, "{}vmcell: {message}", self.level);
        record.end();
        let _ = rustix::io::write(output, record.as_bytes());
    }
}

/// One record of the kernel's log. It does not use the allocator.
struct LogRecord {
    bytes: [u8; 512],
    length: usize,
}

impl Default for LogRecord {
    fn default() -> Self {
        Self {
            bytes: [0; 512],
            length: 0,
        }
    }
}

impl LogRecord {
    /// Adds the newline, in place of the last byte if the record is full.
    fn end(&mut self) {
        let last = self.length.min(self.bytes.len().saturating_sub(1));
        if let Some(place) = self.bytes.get_mut(last) {
            *place = b'\n';
        }
        self.length = last.saturating_add(1);
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Write for LogRecord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let free = self.bytes.get_mut(self.length..).unwrap_or_default();
        let count = text.len().min(free.len());
        for (place, byte) in free.iter_mut().zip(text.as_bytes()) {
            *place = *byte;
        }
        self.length = self.length.saturating_add(count);
        if count < text.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}
