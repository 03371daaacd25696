//! Where, as whom and with what environment a program of a guest runs.

use std::{ffi::OsString, fmt, path::PathBuf};

use clap::Args;
use vmcell::{Command, Error};

use crate::env_file;

#[derive(Debug, Args)]
pub(crate) struct StartOptions {
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
    variables: Vec<Variable>,
    /// Set the variables in this file: lines of the form NAME=value, taken as
    /// they are. Empty lines and those that begin with `#` are skipped. `--env`
    /// wins over it.
    #[arg(long = "env-file", value_name = "FILE")]
    env_files: Vec<PathBuf>,
}

/// A variable of an environment. Its [`Debug`] leaves the value out, which may be
/// a secret.
#[derive(Clone)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)
    }
}

/// The same, with all files read.
#[derive(Clone)]
pub(crate) struct Start {
    user: Option<String>,
    directory: Option<OsString>,
    create_directory: bool,
    variables: Vec<(OsString, OsString)>,
}

impl StartOptions {
    /// Has the command run there, if nobody said where.
    pub(crate) fn prefer_directory(&mut self, directory: &str) {
        self.cwd.get_or_insert_with(|| directory.into());
    }

    /// Reads the files that the options name: before a VM is booted, so that a
    /// file that is not there costs no time.
    pub(crate) fn read(self) -> Result<Start, Error> {
        let mut variables = Vec::new();
        for path in &self.env_files {
            variables.extend(env_file::read(path)?);
        }
        let told = self.variables.into_iter();
        variables.extend(told.map(|told| (told.name.into(), told.value.into())));
        Ok(Start {
            user: self.user,
            directory: self.cwd,
            create_directory: self.create_cwd,
            variables,
        })
    }
}

impl Start {
    pub(crate) fn apply_to(self, command: Command) -> Command {
        let mut command = command.envs(self.variables);
        if let Some(user) = self.user {
            command = command.user(user);
        }
        if let Some(directory) = self.directory {
            command = command.current_dir(directory);
        }
        if self.create_directory {
            command = command.create_current_dir();
        }
        command
    }
}

pub(crate) fn parse_variable(text: &str) -> Result<Variable, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok(Variable {
            name: name.to_owned(),
            value: value.to_owned(),
        }),
        _ => Err("write it as NAME=value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_printed_without_its_value() {
        let variable = parse_variable("TOKEN=s3cret=").unwrap();
        assert_eq!((&*variable.name, &*variable.value), ("TOKEN", "s3cret="));
        assert_eq!(format!("{variable:?}"), "\"TOKEN\"");
    }
}
