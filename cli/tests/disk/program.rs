//! Running the program to its end, but never forever.

use std::{
    ffi::OsStr,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// Ends what takes longer than anything here should.
const PATIENCE: &str = "60";

/// The program with its arguments, in this folder or with these paths.
pub(crate) fn disk(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ended {
    Ended(command(arguments).output().unwrap())
}

/// The program, not yet started.
pub(crate) fn command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new("timeout");
    command
        .args([PATIENCE, env!("CARGO_BIN_EXE_vmcell-disk")])
        .args(arguments)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

/// How it ended, and what it printed.
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

    /// What it printed, in silence but for that.
    #[track_caller]
    pub(crate) fn printed(&self) -> String {
        assert_eq!((self.code(), self.stderr().as_str()), (0, ""), "{self:?}");
        self.stdout()
    }

    /// Each line, which must be an object.
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

    /// Asserts that it ended with this code and said this on standard error, in
    /// lines that begin with its name.
    #[track_caller]
    pub(crate) fn assert_said(&self, code: i32, words: &str) {
        assert_eq!(self.code(), code, "{self:?}");
        assert!(self.stderr().starts_with("vmcell-disk: "), "{self:?}");
        assert!(self.stderr().contains(words), "{self:?}");
    }
}
