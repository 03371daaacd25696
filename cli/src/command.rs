//! What `run` and `exec` run, from the options that they share.

use std::{ffi::OsString, time::Duration};

use clap::Args;
use vmcell::Command;
use vmcell_cli::options::size;

use crate::{
    input::{self, Source},
    limits::LimitOptions,
    start_options::{Start, StartOptions},
};

#[derive(Debug, Args)]
pub(crate) struct CommandOptions {
    #[command(flatten)]
    start: StartOptions,
    /// The command's standard input: `inherit` (or `-`) is yours, `none` is
    /// empty, anything else is the path of a file.
    #[arg(long, value_name = "SOURCE", default_value = "inherit", value_parser = Source::parse)]
    stdin: Source,
    #[command(flatten)]
    limits: LimitOptions,
    /// How long the command may take. Without it, as long as it likes.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_seconds)]
    timeout_seconds: Option<Duration>,
    /// How much the command may print to each of its outputs, in bytes or as in
    /// 64m (k, m, g). If it prints more, it is ended. Without it, as much as it
    /// likes; with `--json`, 16m.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    max_output_bytes: Option<u64>,
    /// A name for the command's process, by which `logs` and `kill` find it.
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    tag: Option<String>,
    /// Print the result as JSON when the command has ended.
    #[arg(long)]
    pub(crate) json: bool,
    /// The command, executed as it is, without a shell.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A command that is ready to be run.
pub(crate) struct Job {
    pub(crate) command: Command,
    /// Where, as whom and with what environment it runs.
    pub(crate) start: Start,
    pub(crate) stdin: Option<input::Reader>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_output: Option<u64>,
    pub(crate) json: bool,
}

impl CommandOptions {
    /// Has the command run there, if nobody said where.
    pub(crate) fn prefer_directory(&mut self, directory: &str) {
        self.start.prefer_directory(directory);
    }

    /// Reads the files that the options name.
    pub(crate) fn into_job(self) -> Result<Job, vmcell::Error> {
        let start = self.start.read()?;
        let mut command = start.clone().apply_to(Command::from_argv(self.command));
        command = self.limits.apply_to(command);
        if let Some(tag) = self.tag {
            command = command.tag(tag);
        }
        if let Some(timeout) = self.timeout_seconds {
            command = command.timeout(timeout);
        }
        if let Some(bytes) = self.max_output_bytes {
            command = command.max_output(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        Ok(Job {
            command,
            start,
            stdin: self.stdin.open()?,
            timeout: self.timeout_seconds,
            max_output: self.max_output_bytes,
            json: self.json,
        })
    }
}

pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
        _ => Err("write whole seconds, 1 or more".to_owned()),
    }
}

pub(crate) fn parse_tag(text: &str) -> Result<String, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("digits alone would be taken for the number of a process".to_owned());
    }
    Ok(text.to_owned())
}
