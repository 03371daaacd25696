use core::fmt::{self, Write};

use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
};

/// Where the agent tells people what goes wrong: the kernel's log, which the
/// host shows when a VM does not come up.
pub struct Console {
    kernel_log: Option<OwnedFd>,
}

impl Console {
    /// Opens the kernel's log. Without one, messages are lost.
    pub fn open() -> Self {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        Self {
            kernel_log: rustix::fs::open("/dev/kmsg", flags, Mode::empty()).ok(),
        }
    }

    /// A console that nobody sees.
    pub fn silent() -> Self {
        Self { kernel_log: None }
    }

    /// Says that something failed. It reaches the serial console.
    pub fn error(&self, message: fmt::Arguments<'_>) {
        // 2 is KERN_CRIT, which `quiet` does not hide.
        self.write("<2>", message);
    }

    fn write(&self, level: &str, message: fmt::Arguments<'_>) {
        let Some(kernel_log) = &self.kernel_log else {
            return;
        };
        let mut line = Line::default();
        // A message that is too long is cut; that is not an error.
        let _ = write!(line, "{level}vmcell: {message}");
        let _ = rustix::io::write(kernel_log, line.as_bytes());
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
