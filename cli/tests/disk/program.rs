//! Runs the program, with a timeout.

use std::{
    ffi::OsStr,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// Seconds after which a run is killed.
const TIMEOUT_SECONDS: &str = "60";

/// Runs the program with these arguments.
pub(crate) fn disk(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ended {
    Ended(command(arguments).output().unwrap())
}

/// Returns the program as a command that is not started yet.
pub(crate) fn command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new("timeout");
    command
        .args([TIMEOUT_SECONDS, env!("CARGO_BIN_EXE_vmcell-disk")])
        .args(arguments)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

/// The exit status and output of a run.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) Output);

impl Ended {
    pub(crate) fn code(&self) -> i32 {
        self.0.status.code().unwrap()
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Asserts success without messages, and returns standard output.
    #[track_caller]
    pub(crate) fn printed(&self) -> String {
        assert_eq!((self.code(), self.stderr().as_str()), (0, ""), "{self:?}");
        self.stdout()
    }

    /// Parses each line of standard output, which must be a JSON object.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<Value> {
        let text = self.stdout();
        let lines = text.lines().map(|line| {
            let value: Value = serde_json::from_str(line).unwrap();
            assert!(value.is_object(), "{line}");
            value
        });
        lines.collect()
    }

    /// Asserts the exit code, and that standard error contains `words` and
    /// starts with the program's name.
    #[track_caller]
    pub(crate) fn assert_failed(&self, code: i32, words: &str) {
        assert_eq!(self.code(), code, "{self:?}");
        assert!(self.stderr().starts_with("vmcell-disk: "), "{self:?}");
        assert!(self.stderr().contains(words), "{self:?}");
    }
}
