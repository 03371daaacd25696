use std::{fmt, path::PathBuf, str::FromStr};

use clap::Args;
use vmcell::{
    Error,
    secret::{Secret, SecretValue},
};

/// Secrets that a new workspace keeps.
#[derive(Debug, Args)]
pub(crate) struct NewSecretOptions {
    /// Keep a secret in the workspace, for `--secret-env`. Other users of this
    /// machine can see the command line: `--secret-file` is safer.
    #[arg(long = "secret", value_name = "NAME=VALUE")]
    literals: Vec<LiteralSecret>,
    /// Keep the content of a file as a secret in the workspace, without the line
    /// end at its end.
    #[arg(long = "secret-file", value_name = "NAME=PATH")]
    files: Vec<FileSecret>,
}

#[derive(Clone)]
struct LiteralSecret {
    name: String,
    value: SecretValue,
}

#[derive(Clone, Debug)]
struct FileSecret {
    name: String,
    path: PathBuf,
}

impl NewSecretOptions {
    /// Reads the files that the options name.
    pub(crate) fn load(self) -> Result<Vec<Secret>, Error> {
        let literals = self.literals.into_iter();
        let literals = literals.map(|literal| Secret::new(literal.name, literal.value));
        let files = self.files.into_iter();
        let files = files.map(|file| Secret::from_file(file.name, file.path));
        Ok(literals.chain(files).collect::<Result<_, _>>()?)
    }
}

impl fmt::Debug for LiteralSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)
    }
}

impl FromStr for LiteralSecret {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = split(text)?;
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned().into(),
        })
    }
}

impl FromStr for FileSecret {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, path) = split(text)?;
        Ok(Self {
            name: name.to_owned(),
            path: path.into(),
        })
    }
}

/// The error does not repeat the text, which may be a secret.
fn split(text: &str) -> Result<(&str, &str), &'static str> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    parts.ok_or("expected a name, `=` and the rest")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_printed_without_its_value() {
        let secret: LiteralSecret = "token=s3cret=value".parse().unwrap();
        assert_eq!(format!("{secret:?}"), "\"token\"");
        let options = NewSecretOptions {
            literals: vec![secret],
            files: Vec::new(),
        };
        let secrets = options.load().unwrap();
        assert_eq!(secrets[0].name(), "token");
        for text in ["s3cret", "=s3cret", ""] {
            let error = text.parse::<LiteralSecret>().unwrap_err();
            assert!(!error.contains("s3cret"));
        }
    }
}
