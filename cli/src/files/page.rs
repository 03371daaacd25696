//! What a command prints about files.

use std::{
    io::{self, BufWriter, IsTerminal, Stdout, Write},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use anyhow::Context;

use super::name;
use crate::exit_code;

/// Our standard output. On a terminal names are made printable; into a pipe or
/// a file they go as they are.
pub(super) struct Page {
    out: BufWriter<Stdout>,
    is_terminal: bool,
}

impl Page {
    pub(super) fn new() -> Self {
        let out = io::stdout();
        Self {
            is_terminal: out.is_terminal(),
            out: BufWriter::new(out),
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// A line that ends with a name, and perhaps with words behind it.
    pub(super) fn named(&mut self, before: &str, path: &Path, after: &str) -> io::Result<()> {
        let out = &mut self.out;
        out.write_all(before.as_bytes())?;
        match self.is_terminal {
            true => out.write_all(name::shown(path).as_bytes())?,
            false => out.write_all(path.as_os_str().as_bytes())?,
        }
        writeln!(out, "{after}")
    }

    /// Ends with an exit code, if everything could be written until now.
    pub(super) fn finish(mut self, written: io::Result<()>) -> anyhow::Result<u8> {
        match written.and_then(|()| self.out.flush()) {
            Ok(()) => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // What is left in the buffer would fail again.
                let _ = self.out.into_parts();
                Ok(exit_code::UNREAD)
            }
            Err(error) => Err(error).context("standard output"),
        }
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
