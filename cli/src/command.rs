//! The options of a command that `run` and `exec` share.

use std::{ffi::OsString, time::Duration};

use clap::{Args, error::ErrorKind};
use vmcell::Command;
use vmcell_cli::options::size;
use vmcell_rootfs::oci::Defaults;

use crate::{
    arguments::RunArguments,
    input::{self, StdinSource},
    limits::LimitOptions,
    secret::SecretOptions,
    start_options::{StartOptions, StartSettings},
};

#[derive(Debug, Args)]
pub(crate) struct CommandOptions {
    #[command(flatten)]
    start: StartOptions,
    #[command(flatten)]
    secrets: SecretOptions,
    /// Standard input of the command: `inherit` (or `-`), `none`, or the path
    /// of a file.
    #[arg(long, value_name = "SOURCE", default_value = "inherit", value_parser = StdinSource::parse)]
    stdin: StdinSource,
    #[command(flatten)]
    limits: LimitOptions,
    /// End the command after this many seconds. Default: no limit.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_seconds)]
    timeout_seconds: Option<Duration>,
    /// End the command if it prints more than this to one of its outputs, in
    /// bytes or with a suffix (k, m, g). Default: no limit, or 16m with
    /// `--json`.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    max_output_bytes: Option<u64>,
    /// Tag of the command's process, for `logs` and `kill`.
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    tag: Option<String>,
    /// Print the result as JSON when the command has ended.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The tag of a command in the background, if the user chooses none.
const BACKGROUND_TAG: &str = "main";

/// A command that is ready to run, with all files of its options read.
pub(crate) struct PreparedCommand {
    pub(crate) command: Command,
    /// User, working directory and environment of the command.
    pub(crate) start: StartSettings,
    /// The secrets that it gets.
    pub(crate) secrets: SecretOptions,
    pub(crate) stdin: Option<input::Reader>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_output: Option<u64>,
    pub(crate) json: bool,
}

impl CommandOptions {
    /// Sets the working directory, unless the user has chosen one.
    pub(crate) fn set_default_directory(&mut self, directory: &str) {
        self.start.set_default_directory(directory);
    }

    /// Sets environment variables, unless the user has chosen others.
    pub(crate) fn set_default_variables(&mut self, variables: &'static [(&str, &str)]) {
        self.start.set_default_variables(variables);
    }

    /// Without standard input, and with a tag by which `logs` finds it.
    pub(crate) fn prepare_for_background(&mut self) {
        self.stdin = StdinSource::Empty;
        self.tag.get_or_insert_with(|| BACKGROUND_TAG.to_owned());
    }

    /// Reads the files that the options name.
    pub(crate) fn prepare(self, argv: Vec<OsString>) -> anyhow::Result<PreparedCommand> {
        self.prepare_in(argv, || Ok(Defaults::default()))
    }

    /// Reads the files that the options name, and completes the command with the defaults of its
    /// environment, which are looked up last: an image may have to be built for them.
    pub(crate) fn prepare_in(
        self,
        argv: Vec<OsString>,
        defaults: impl FnOnce() -> anyhow::Result<Defaults>,
    ) -> anyhow::Result<PreparedCommand> {
        let mut start = self.start.load()?;
        let stdin = self.stdin.open()?;
        let defaults = defaults()?;
        start.set_defaults(&defaults);
        let arguments = match argv.is_empty() {
            true => defaults.command.iter().map(Into::into).collect(),
            false => argv,
        };
        let entrypoint = defaults.entrypoint.iter().map(OsString::from);
        let argv: Vec<_> = entrypoint.chain(arguments).collect();
        if argv.is_empty() {
            let missing = ErrorKind::MissingRequiredArgument;
            let reason = "no command: the image has none, give one after `--`";
            let mut usage = RunArguments::augment_args(clap::Command::new("vmcell run"));
            return Err(usage.error(missing, reason).into());
        }
        let mut command = start.clone().apply_to(Command::from_argv(argv));
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
        Ok(PreparedCommand {
            command,
            start,
            secrets: self.secrets,
            stdin,
            timeout: self.timeout_seconds,
            max_output: self.max_output_bytes,
            json: self.json,
        })
    }
}

impl PreparedCommand {
    /// Grants it the secrets of the caller's environment.
    pub(crate) fn grant_secrets(mut self) -> Result<Self, vmcell::Error> {
        for (name, secret) in std::mem::take(&mut self.secrets).load()? {
            self.command = self.command.secret_env(name, &secret);
        }
        Ok(self)
    }
}

pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected whole seconds, 1 or more".to_owned()),
    }
}

pub(crate) fn parse_tag(text: &str) -> Result<String, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("digits only would be taken for a process ID".to_owned());
    }
    Ok(text.to_owned())
}
