//! What `run` and `exec` run, from the options that they share.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, value_parser};
use vmcell::Command;

use crate::{
    env_file,
    input::{self, Source},
    size,
};

#[derive(Debug, Args)]
pub(crate) struct CommandOptions {
    /// Who the command runs as, names or numbers. Without it, root.
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// Where the command runs. Without it, in `/`, or after `run --push` in
    /// `/workspace`.
    #[arg(long, value_name = "DIR")]
    cwd: Option<OsString>,
    /// Make that directory if it is not there.
    #[arg(long, requires = "cwd")]
    create_cwd: bool,
    /// Set a variable of the command's environment.
    #[arg(long = "env", value_name = "K=V", value_parser = parse_variable)]
    variables: Vec<(String, String)>,
    /// Set the variables in this file: lines of the form NAME=value, taken as
    /// they are. Empty lines and those that begin with `#` are skipped. `--env`
    /// wins over it.
    #[arg(long = "env-file", value_name = "FILE")]
    env_files: Vec<PathBuf>,
    /// The command's standard input: `inherit` (or `-`) is yours, `none` is
    /// empty, anything else is the path of a file.
    #[arg(long, value_name = "SOURCE", default_value = "inherit", value_parser = Source::parse)]
    stdin: Source,
    /// How much memory the command may use, with all its descendants, in bytes
    /// or as in 64m (k, m, g). If it needs more, it is ended.
    #[arg(long, value_name = "SIZE", value_parser = size::parse_positive)]
    memory_max: Option<u64>,
    /// How many processes and threads the command may be.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pids_max: Option<u32>,
    /// How many processors the command may keep busy, such as 0.5.
    #[arg(long, value_name = "N", value_parser = parse_cpus)]
    cpus: Option<u32>,
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
    pub(crate) stdin: Option<input::Reader>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_output: Option<u64>,
    pub(crate) json: bool,
}

impl CommandOptions {
    /// Has the command run there, if nobody said where.
    pub(crate) fn prefer_directory(&mut self, directory: &str) {
        self.cwd.get_or_insert_with(|| directory.into());
    }

    /// Reads the files that the options name: before a VM is booted, so that a
    /// file that is not there costs no time.
    pub(crate) fn into_job(self) -> Result<Job, vmcell::Error> {
        let mut command = Command::from_argv(self.command);
        for path in &self.env_files {
            command = command.envs(env_file::read(path)?);
        }
        command = command.envs(self.variables);
        if let Some(user) = self.user {
            command = command.user(user);
        }
        if let Some(directory) = self.cwd {
            command = command.current_dir(directory);
        }
        if self.create_cwd {
            command = command.create_current_dir();
        }
        if let Some(bytes) = self.memory_max {
            command = command.memory_max(bytes);
        }
        if let Some(count) = self.pids_max {
            command = command.pids_max(count);
        }
        if let Some(thousandths) = self.cpus {
            command = command.cpu_milli(thousandths);
        }
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
            stdin: self.stdin.open()?,
            timeout: self.timeout_seconds,
            max_output: self.max_output_bytes,
            json: self.json,
        })
    }
}

pub(crate) fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=value".to_owned()),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
        _ => Err("write whole seconds, 1 or more".to_owned()),
    }
}

/// Thousandths of a processor.
fn parse_cpus(text: &str) -> Result<u32, String> {
    let count: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    if (0.01..=1024.0).contains(&count) {
        Ok((count * 1000.0).round() as u32)
    } else {
        Err("choose 0.01 to 1024".to_owned())
    }
}

pub(crate) fn parse_tag(text: &str) -> Result<String, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("digits alone would be taken for the number of a process".to_owned());
    }
    Ok(text.to_owned())
}
