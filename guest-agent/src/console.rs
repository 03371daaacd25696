use core::fmt::{self, Write};

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
};

/// Where the agent tells people what goes wrong: the kernel's log, or, where it
/// has no kernel of its own, its standard error. The host shows it when a VM
/// does not come up.
pub struct Console {
    output: Option<OwnedFd>,
    /// What a line begins with.
    level: &'static str,
}

/// 2 is KERN_CRIT, which `quiet` does not hide.
const LEVEL: &str = "<2>";

impl Console {
    /// Opens the kernel's log. Without one it is standard error.
    pub fn open() -> Self {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        match rustix::fs::open("/dev/kmsg", flags, Mode::empty()) {
            Ok(log) => Self {
                output: Some(log),
                level: LEVEL,
            },
            Err(_) => Self::standard_error(),
        }
    }

    /// Standard error. Without it, messages are lost.
    pub fn standard_error() -> Self {
        Self {
            output: crate::sys::standard_error().ok(),
            level: "",
        }
    }

    /// A console that nobody sees.
    pub fn silent() -> Self {
        Self {
            output: None,
            level: "",
        }
    }

    /// Says that something failed.
    pub fn error(&self, message: fmt::Arguments<'_>) {
        let Some(output) = &self.output else {
            return;
        };
        let mut line = Line::default();
        // A message that is too long is cut; that is not an error.
        let _ = write!(line, "{}vmcell: {message}", self.level);
        line.end();
        let _ = rustix::io::write(output, line.as_bytes());
    }
}

/// One record of the kernel's log, without the allocator.
struct Line {
    bytes: [u8; 512],
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            bytes: [0; 512],
            length: 0,
        }
    }
}

impl Line {
    /// Ends the line, in place of its last byte if it is full.
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

impl Write for Line {
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
