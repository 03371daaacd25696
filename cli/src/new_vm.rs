//! A VM of our own.

use vmcell::Vm;

use crate::{
    failure::say,
    files::{Pushes, keep_baseline},
    machine_options::MachineOptions,
    root::Root,
};

/// What is asked of it.
pub(crate) struct VmOptions {
    pub(crate) id: Option<String>,
    pub(crate) vcpu_count: u32,
    pub(crate) mem_mib: u32,
    pub(crate) machine: MachineOptions,
    pub(crate) pushes: Pushes,
}

/// A VM that is ready to be booted.
pub(crate) struct NewVm {
    pub(crate) root: Root,
    pub(crate) options: VmOptions,
}

/// A VM that runs, and ends with us.
pub(crate) struct OwnVm {
    pub(crate) vm: Vm,
    is_kept: bool,
}

impl NewVm {
    /// Boots it and brings into it what it begins with. Dropping the future ends
    /// the VM.
    pub(crate) async fn boot(self) -> anyhow::Result<OwnVm> {
        let VmOptions {
            id,
            vcpu_count,
            mem_mib,
            machine,
            pushes,
        } = self.options;
        // Others can only ask for changes if they know the VM.
        let compared = id.is_some() || !pushes.is_empty();
        let is_kept = self.root.is_kept();
        let builder = self.root.builder().vcpus(vcpu_count).memory_mib(mem_mib);
        let mut builder = machine.apply(builder);
        if let Some(id) = id {
            builder = builder.id(id);
        }
        let vm = builder.start().await?;
        vm.warnings().iter().for_each(|warning| say(warning));
        pushes.run(&vm).await?;
        if compared {
            keep_baseline(&vm).await?;
        }
        Ok(OwnVm { vm, is_kept })
    }
}

impl OwnVm {
    /// Ends it. If its disk goes with it, there is nothing to make clean.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        if self.is_kept {
            self.vm.stop().await?;
        } else {
            self.vm.kill().await;
        }
        Ok(())
    }
}
