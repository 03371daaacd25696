//! Fills an image with `debugfs`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Stdio;

use crate::script::{BATCH, Script};
use crate::staging::Staging;
use crate::{Error, Tools};

/// Why an image could not be filled. The caller adds paths and sizes for the error message.
#[derive(Debug)]
pub(crate) enum FillError {
    /// The image has no block or inode left.
    ImageFull,
    /// The host's file system has no block left.
    HostFull,
    /// Anything else.
    Other(Error),
}

impl From<Error> for FillError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Runs `debugfs` on one image.
pub(crate) struct Debugfs<'a> {
    pub(crate) tools: &'a Tools,
    pub(crate) image: &'a Path,
    pub(crate) staging: &'a Staging,
    pub(crate) epoch: u32,
}

impl Debugfs<'_> {
    /// Runs a whole script and reports progress as a fraction (0 to 1).
    pub(crate) fn fill(
        &self,
        script: &Script,
        progress: &mut dyn FnMut(f32),
    ) -> Result<(), FillError> {
        let total = (script.batch_commands + script.singles.len()).max(1) as f32;
        let mut done = 0;
        let mut report = || {
            done += 1;
            progress(done as f32 / total);
        };
        self.run("-f", OsStr::new(BATCH), &mut report)?;
        for single in &script.singles {
            self.run("-R", OsStr::from_bytes(single), &mut || {})?;
            report();
        }
        Ok(())
    }

    /// Runs `debugfs` once. It echoes every command of a batch, which is used for progress. It
    /// continues after errors and exits with 0, so errors are detected by its output on stderr.
    fn run(
        &self,
        option: &str,
        argument: &OsStr,
        on_command: &mut dyn FnMut(),
    ) -> Result<(), FillError> {
        let mut tool = self.tools.e2fsprogs("debugfs")?;
        let log = self.staging.folder().join("errors");
        let errors = File::create(&log).map_err(|source| Error::Write {
            path: log.clone(),
            source,
        })?;
        tool.command
            .env("E2FSPROGS_FAKE_TIME", self.epoch.to_string())
            .env("DEBUGFS_PAGER", "__none__")
            .current_dir(self.staging.folder())
            .args(["-w", option])
            .arg(argument)
            .arg(self.image)
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut child = tool
            .command
            .spawn()
            .map_err(|source| tool.unusable(source))?;
        let read = child
            .stdout
            .take()
            .map_or(Ok(()), |output| count_commands(output, on_command));
        let status = child.wait().map_err(|source| tool.unusable(source))?;
        read.map_err(|source| tool.unusable(source))?;

        let output = fs::read(&log).map_err(|source| Error::Read { path: log, source })?;
        // The first line is the version.
        let errors = output
            .splitn(2, |byte| *byte == b'\n')
            .nth(1)
            .unwrap_or_default();
        if status.success() && errors.is_empty() {
            return Ok(());
        }
        let errors = if errors.is_empty() { &output } else { errors };
        // Under `LC_ALL=C` these are the texts of libext2fs (EXT2_ET_BLOCK_ALLOC_FAIL,
        // EXT2_ET_INODE_ALLOC_FAIL) and of the C library (ENOSPC).
        let mentions = |text: &str| String::from_utf8_lossy(errors).contains(text);
        Err(if mentions("Could not allocate") {
            FillError::ImageFull
        } else if mentions("No space left on device") {
            FillError::HostFull
        } else {
            FillError::Other(tool.failed(errors))
        })
    }
}

/// Reads all output and calls `on_command` for every echoed command.
fn count_commands(output: impl io::Read, on_command: &mut dyn FnMut()) -> io::Result<()> {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        if line.starts_with(b"debugfs: ") {
            on_command();
        }
        line.clear();
    }
    Ok(())
}
