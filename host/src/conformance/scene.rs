use std::{path::Path, process::Command as Program, sync::Arc};

use super::unmet::Unmet;
use crate::{
    files::Files,
    process::{Command, Output},
    vm::{Vm, VmBuilder},
};

/// Describes a VM of the backend that is looked at.
pub(super) type Builder = Arc<dyn Fn() -> VmBuilder + Send + Sync>;

/// Makes the command of a program that starts a VM and stays.
pub(super) type MakeProgram = Arc<dyn Fn() -> Program + Send + Sync>;

/// What a behaviour is looked at with.
#[derive(Clone)]
pub(super) struct Scene {
    /// One that all behaviours share which do not end theirs.
    pub(super) vm: Vm,
    pub(super) builder: Builder,
    pub(super) program: Option<MakeProgram>,
}

impl Scene {
    /// A VM of a behaviour's own.
    pub(super) async fn start(&self) -> Result<Vm, Unmet> {
        Ok((self.builder)().start().await?)
    }

    /// The files of a folder of a behaviour's own, which no path leaves.
    pub(super) async fn folder(&self, name: &str) -> Result<Files, Unmet> {
        let folder = Path::new("/tmp/conformance").join(name);
        let files = self.vm.files();
        files.make_directory(&folder).await?;
        Ok(files.at(folder))
    }

    /// What a line of shell prints, if it ends well.
    pub(super) async fn shell(&self, line: &str) -> Result<String, Unmet> {
        let output = self.output(line).await?;
        match output.success() {
            true => Ok(output.stdout_text()),
            false => Err(Unmet::failed(format!("`{line}` ended so: {output:?}"))),
        }
    }

    /// What comes of a line of shell.
    pub(super) async fn output(&self, line: &str) -> Result<Output, Unmet> {
        Ok(self.vm.exec_command(Command::shell(line)).await?)
    }
}
