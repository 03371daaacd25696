use std::{path::Path, process::Command as Program, sync::Arc};

use super::check::CheckError;
use crate::{
    files::Files,
    process::{Command, Output},
    vm::{Vm, VmBuilder},
};

/// Describes a VM of the backend under test.
pub(super) type VmBuilderFactory = Arc<dyn Fn() -> VmBuilder + Send + Sync>;

/// Makes the command of a program that starts a VM and waits to be killed.
pub(super) type ProgramFactory = Arc<dyn Fn() -> Program + Send + Sync>;

/// What a check has to work with.
#[derive(Clone)]
pub(super) struct CheckContext {
    /// Shared by all checks that do not end their VM.
    pub(super) vm: Vm,
    pub(super) builder: VmBuilderFactory,
    pub(super) program: Option<ProgramFactory>,
}

impl CheckContext {
    /// Starts a VM for one check.
    pub(super) async fn start(&self) -> Result<Vm, CheckError> {
        Ok((self.builder)().start().await?)
    }

    /// Creates a folder for one check, and returns its files, confined to that
    /// folder.
    pub(super) async fn folder(&self, name: &str) -> Result<Files, CheckError> {
        let folder = Path::new("/tmp/conformance").join(name);
        let files = self.vm.files();
        files.make_directory(&folder).await?;
        Ok(files.at(folder))
    }

    /// Runs a shell line, and returns what it prints if it succeeds.
    pub(super) async fn shell(&self, line: &str) -> Result<String, CheckError> {
        let output = self.output(line).await?;
        match output.success() {
            true => Ok(output.stdout_text()),
            false => Err(CheckError::failed(format!("`{line}` failed: {output:?}"))),
        }
    }

    /// Runs a shell line.
    pub(super) async fn output(&self, line: &str) -> Result<Output, CheckError> {
        Ok(self.vm.exec_command(Command::shell(line)).await?)
    }
}
