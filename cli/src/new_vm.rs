//! A VM of our own.

use std::{ffi::OsStr, path::PathBuf};

use vmcell::Vm;

use crate::{
    environment,
    files::{Pushes, keep_baseline},
};

/// What is asked of it.
pub(crate) struct VmOptions {
    pub(crate) id: Option<String>,
    pub(crate) vcpu_count: u32,
    pub(crate) mem_mib: u32,
    pub(crate) pushes: Pushes,
}

/// A VM that is ready to be booted.
pub(crate) struct NewVm {
    image: PathBuf,
    options: VmOptions,
}

impl NewVm {
    /// Makes the image if it is not there yet.
    pub(crate) fn prepare(environment: &OsStr, options: VmOptions) -> anyhow::Result<Self> {
        let image = environment::image(environment)?;
        Ok(Self { image, options })
    }

    /// Boots it and brings into it what it begins with. Dropping the future ends
    /// the VM.
    pub(crate) async fn boot(self) -> anyhow::Result<Vm> {
        let VmOptions {
            id,
            vcpu_count,
            mem_mib,
            pushes,
        } = self.options;
        // Others can only ask for changes if they know the VM.
        let compared = id.is_some() || !pushes.is_empty();
        let mut builder = Vm::builder()
            .image(self.image)
            .vcpus(vcpu_count)
            .memory_mib(mem_mib);
        if let Some(id) = id {
            builder = builder.id(id);
        }
        let vm = builder.start().await?;
        pushes.run(&vm).await?;
        if compared {
            keep_baseline(&vm).await?;
        }
        Ok(vm)
    }
}
