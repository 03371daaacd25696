use std::{
    io::{self, BufWriter, IsTerminal, Stdout, Write},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use anyhow::Context;
use serde_json::Value;
use vmcell::{ColourPolicy, Sanitizer, printable_name};

use super::json;
use crate::exit;

/// Buffered standard output for untrusted data. On a terminal, control
/// characters are replaced; into a pipe or file, bytes go unchanged.
#[derive(Debug)]
pub struct SafeStdout {
    out: BufWriter<Stdout>,
    is_terminal: bool,
    is_coloured: bool,
    sanitizer: Sanitizer,
}

/// Size of the buffer.
const BUFFER_SIZE: usize = 64 << 10;

impl SafeStdout {
    /// Takes standard output.
    #[expect(clippy::new_without_default, reason = "there is only one")]
    pub fn new() -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        Self {
            is_terminal,
            is_coloured: is_terminal && colours_allowed(),
            out: BufWriter::with_capacity(BUFFER_SIZE, out),
            sanitizer: Sanitizer::new(ColourPolicy::Replace),
        }
    }

    /// Returns whether it is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns whether colours may be printed.
    pub fn is_coloured(&self) -> bool {
        self.is_coloured
    }

    /// Prints a line with a path, and text before and after it. `colour` is an
    /// escape sequence, used only if colours may be printed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn path_line(
        &mut self,
        before: &str,
        path: &Path,
        colour: &str,
        after: &str,
    ) -> io::Result<()> {
        self.out.write_all(before.as_bytes())?;
        self.untrusted_text(path.as_os_str().as_bytes(), colour)?;
        writeln!(self.out, "{after}")
    }

    /// Prints a name, or part of a line, that comes from a guest.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn untrusted_text(&mut self, bytes: &[u8], colour: &str) -> io::Result<()> {
        if !self.is_terminal {
            return self.out.write_all(bytes);
        }
        let text = printable_name(bytes);
        if self.is_coloured && !colour.is_empty() && !text.is_empty() {
            return write!(self.out, "{colour}{text}{RESET_STYLE}");
        }
        self.out.write_all(text.as_bytes())
    }

    /// Prints bytes of a file. On a terminal, control characters are replaced.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn file_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.is_terminal {
            true => self.out.write_all(self.sanitizer.feed(bytes).as_bytes()),
            false => self.out.write_all(bytes),
        }
    }

    /// Prints a JSON value on a line of its own.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn json(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.out, "{}", json::line(value))
    }

    /// Flushes, and returns the exit code. `written` is the result of all
    /// writes so far.
    ///
    /// # Errors
    /// If writing failed, except because the reader has closed the pipe.
    pub fn finish(mut self, written: io::Result<()>) -> anyhow::Result<u8> {
        let rest = self.sanitizer.finish();
        let written = written.and_then(|()| self.out.write_all(rest.as_bytes()));
        match written.and_then(|()| self.out.flush()) {
            Ok(()) => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // Drop the buffer, which would fail to be written again.
                let _ = self.out.into_parts();
                Ok(exit::BROKEN_PIPE)
            }
            Err(error) => Err(error).context("standard output"),
        }
    }
}

impl Write for SafeStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Resets colours and other attributes.
pub(super) const RESET_STYLE: &str = "\x1b[0m";

/// Returns whether the user wants colours: see <https://no-color.org>.
pub(super) fn colours_allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
