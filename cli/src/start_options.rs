//! User, working directory and environment of a command in the guest.

use std::{ffi::OsString, fmt, os::unix::ffi::OsStrExt, path::PathBuf};

use clap::Args;
use vmcell::{Command, Error};
use vmcell_rootfs::oci::Defaults;

use crate::{digest::PartsDigest, env_file};

#[derive(Debug, Args)]
pub(crate) struct StartOptions {
    /// User and group to run as, by name or number. Default: root, or the user of
    /// the workspace.
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// Working directory. Default: `/`, or `/workspace` with `run --push` and in
    /// workspaces.
    #[arg(long, value_name = "DIR")]
    cwd: Option<OsString>,
    /// Create the working directory if it does not exist.
    #[arg(long, requires = "cwd")]
    create_cwd: bool,
    /// Set an environment variable.
    #[arg(long = "env", short = 'e', value_name = "K=V", value_parser = parse_variable)]
    variables: Vec<Variable>,
    /// Set the environment variables in FILE: lines of the form NAME=value,
    /// without quoting or expansion. Empty lines and lines that start with `#`
    /// are ignored. `--env` takes precedence.
    #[arg(long = "env-file", value_name = "FILE")]
    env_files: Vec<PathBuf>,
    #[arg(skip)]
    default_variables: &'static [(&'static str, &'static str)],
}

/// An environment variable. Its [`Debug`] omits the value, which may be a
/// secret.
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

/// The options with all their files read.
#[derive(Clone)]
pub(crate) struct StartSettings {
    user: Option<String>,
    directory: Option<OsString>,
    create_directory: bool,
    variables: Vec<(OsString, OsString)>,
}

impl StartOptions {
    /// Sets the working directory, unless the user has chosen one.
    pub(crate) fn set_default_directory(&mut self, directory: &str) {
        self.cwd.get_or_insert_with(|| directory.into());
    }

    /// Sets environment variables, unless the user has chosen others.
    pub(crate) fn set_default_variables(&mut self, variables: &'static [(&str, &str)]) {
        self.default_variables = variables;
    }

    /// Reads the files that the options name. Done before a VM boots, so that a
    /// missing file fails at once.
    pub(crate) fn load(self) -> Result<StartSettings, Error> {
        let defaults = self.default_variables.iter();
        let mut variables: Vec<(OsString, OsString)> = defaults
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        for path in &self.env_files {
            variables.extend(env_file::read(path)?);
        }
        let from_options = self.variables.into_iter();
        variables.extend(from_options.map(|option| (option.name.into(), option.value.into())));
        Ok(StartSettings {
            user: self.user,
            directory: self.cwd,
            create_directory: self.create_cwd,
            variables,
        })
    }
}

impl StartSettings {
    /// Sets what the user has not chosen.
    pub(crate) fn set_defaults(&mut self, defaults: &Defaults) {
        self.user = self.user.take().or_else(|| defaults.user.clone());
        let directory = defaults.working_dir.as_ref();
        self.directory = self.directory.take().or(directory.map(Into::into));
        let variables = defaults.variables();
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        // The last one counts.
        self.variables.splice(..0, variables);
    }

    /// Adds all settings to a digest.
    pub(crate) fn add_to(&self, digest: &mut PartsDigest) {
        if let Some(user) = &self.user {
            digest.add("user", user);
        }
        if let Some(directory) = &self.directory {
            digest.add("directory", directory.as_bytes());
        }
        if self.create_directory {
            digest.add("create directory", "");
        }
        for (name, value) in &self.variables {
            digest.add("variable", name.as_bytes());
            digest.add("value", value.as_bytes());
        }
    }

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
        _ => Err("expected NAME=value".to_owned()),
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
