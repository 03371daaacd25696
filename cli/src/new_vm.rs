//! A VM of our own.

use serde_json::Value;
use vmcell::{EndKind, Vm, VmEnd, VmState};
use vmcell_cli::signals::Signals;

use crate::{
    exit_code::OUR_OWN,
    failure::{print_json, say},
    files::{Pushes, keep_baseline},
    machine_options::MachineOptions,
    result::of_end,
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

/// What came of the work in a VM of our own.
pub(crate) struct Finished {
    /// The exit code.
    pub(crate) code: u8,
    /// What there is to tell machines, if they are to be told.
    pub(crate) result: Option<Value>,
}

impl From<u8> for Finished {
    fn from(code: u8) -> Self {
        Self { code, result: None }
    }
}

impl NewVm {
    /// Boots it, brings into it what it begins with, does the work in it and
    /// tells machines what came of that. However it goes, the VM has ended
    /// afterwards: in order, if its disk is kept.
    pub(crate) async fn run(
        self,
        signals: &mut Signals,
        work: impl AsyncFnOnce(&Vm, &mut Signals) -> anyhow::Result<Finished>,
    ) -> anyhow::Result<u8> {
        let VmOptions {
            id,
            vcpu_count,
            mem_mib,
            machine,
            pushes,
        } = self.options;
        // Others can only ask for changes if they know the VM.
        let compared = id.is_some() || !pushes.is_empty();
        let builder = self.root.builder().vcpus(vcpu_count).memory_mib(mem_mib);
        let mut builder = machine.apply(builder);
        if let Some(id) = id {
            builder = builder.id(id);
        }
        let vm = tokio::select! {
            vm = builder.start() => vm?,
            code = signals.next() => return Ok(code),
        };
        let preparing = async {
            vm.warnings().iter().for_each(|warning| say(warning));
            pushes.run(&vm).await?;
            if compared {
                keep_baseline(&vm).await?;
            }
            anyhow::Ok(())
        };
        let interrupted = tokio::select! {
            prepared = preparing => prepared.map(|()| None),
            code = signals.next() => Ok(Some(code)),
        };
        let worked = match interrupted {
            Ok(None) => work(&vm, signals).await,
            Ok(Some(code)) => Ok(code.into()),
            Err(error) => Err(error),
        };
        // From here on no signal ends us: the end takes a bounded time.
        let end = end(&vm).await;
        let mut finished = worked?;
        if vm.keeps_disk() {
            if let Some(result) = &mut finished.result {
                result["vm_end"] = of_end(end);
            }
            if end.kind() != EndKind::Clean {
                say(&format!("the disk was not left clean: {end}"));
                finished.code = OUR_OWN;
            }
        }
        if let Some(result) = finished.result {
            print_json(&result);
        }
        Ok(finished.code)
    }
}

/// Ends a VM of our own. If its disk goes with it, there is nothing to make
/// clean, unless another program has asked for that.
async fn end(vm: &Vm) -> VmEnd {
    if vm.keeps_disk() || vm.state() == VmState::Stopping {
        // How it ended tells whether that worked.
        let _ = vm.stop().await;
    } else {
        vm.kill().await;
    }
    vm.ended().await
}
