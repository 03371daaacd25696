//! What `run` copies out of its VM after the command.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use clap::builder::{OsStringValueParser, TypedValueParser};
use vmcell::{Error, Vm, files::Files};
use vmcell_cli::{
    options::copy_target::copy_target,
    show::{Progress, Summary},
};

use super::path::guest_path;
use crate::failure::{describe, report};

/// A path in the VM, and the local path that it is copied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PullArgument {
    from: PathBuf,
    to: PathBuf,
}

impl PullArgument {
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(|text| Self::parse(&text))
    }

    /// Copies a path of a VM. If `to` ends with a slash, the copy is placed in
    /// it.
    pub(crate) fn new(from: &OsStr, to: &OsStr) -> Self {
        let from = guest_path(from);
        let to = copy_target(&from, Path::new(to), false);
        Self { from, to }
    }

    /// Parses `PATH=HOST`, split at the first `=`.
    fn parse(text: &OsStr) -> Result<Self, String> {
        let bytes = text.as_bytes();
        let equals = bytes.iter().position(|byte| *byte == b'=');
        match equals.map(|end| bytes.split_at(end)) {
            Some((from @ [_, ..], [b'=', to @ ..])) if !to.is_empty() => {
                Ok(Self::new(OsStr::from_bytes(from), OsStr::from_bytes(to)))
            }
            _ => Err("expected PATH=HOST: a path in the VM and a local path".to_owned()),
        }
    }
}

/// The paths to copy out of a VM.
pub(crate) struct Pulls {
    pub(crate) paths: Vec<PullArgument>,
    /// Whether a path may be a symbolic link, which is then created here.
    pub(crate) allow_symlink: bool,
}

impl Pulls {
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Copies what it can. Prints what could not be copied, and returns whether
    /// everything was.
    pub(crate) async fn run(self, vm: &Vm) -> bool {
        let mut complete = true;
        for path in self.paths {
            match path.pull(&vm.files(), self.allow_symlink).await {
                Ok(summary) => summary.warnings().iter().for_each(|line| report(line)),
                Err(error) => {
                    report(&format!("--pull: {}", describe(&error)));
                    complete = false;
                }
            }
        }
        complete
    }
}

impl PullArgument {
    /// Copies it.
    pub(crate) async fn pull(self, files: &Files, allow_symlink: bool) -> Result<Summary, Error> {
        let progress = Progress::new(None);
        let mut pull = files.pull(self.from, self.to);
        if allow_symlink {
            pull = pull.allow_symlink();
        }
        if let Some(callback) = progress.callback() {
            pull = pull.progress(callback);
        }
        Ok(pull.run().await?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_parts_vm_and_machine() {
        for (text, from, to) in [
            ("out=./out", "/workspace/out", "./out"),
            ("/var/log=logs", "/var/log", "logs"),
            ("a=b=c", "/workspace/a", "b=c"),
            ("a/b=c/", "/workspace/a/b", "c/b"),
            (".=x", "/workspace", "x"),
        ] {
            let expected = PullArgument {
                from: from.into(),
                to: to.into(),
            };
            assert_eq!(
                PullArgument::parse(OsStr::new(text)),
                Ok(expected),
                "{text}"
            );
        }
        for text in ["", "out", "=out", "out="] {
            assert!(PullArgument::parse(OsStr::new(text)).is_err(), "{text}");
        }
    }
}
