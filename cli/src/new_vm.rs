//! Starts a VM for the duration of a command or shell.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use vmcell::{EndKind, Quotas, Vm, VmEnd, VmState, network::NetworkPolicy};
use vmcell_cli::{show::Spinner, signals::Signals};

use crate::{
    exit_code::{TIMED_OUT, TOOL_FAILED},
    failure::{print_json, report},
    files::{Pushes, store_baseline},
    machine_options::MachineOptions,
    vm_source::VmSource,
};

/// The options of a new VM.
pub(crate) struct VmOptions {
    pub(crate) id: Option<String>,
    pub(crate) vcpu_count: u32,
    pub(crate) mem_mib: u32,
    pub(crate) machine: MachineOptions,
    pub(crate) quotas: Quotas,
    pub(crate) network: Option<NetworkPolicy>,
    pub(crate) pushes: Pushes,
    /// How long the VM may run.
    pub(crate) time_to_live: Option<Duration>,
}

impl Default for VmOptions {
    fn default() -> Self {
        Self {
            id: None,
            vcpu_count: 1,
            mem_mib: 1024,
            machine: MachineOptions::default(),
            quotas: Quotas::new(),
            network: None,
            pushes: Pushes::default(),
            time_to_live: None,
        }
    }
}

/// A VM that is ready to start.
pub(crate) struct NewVm {
    pub(crate) source: VmSource,
    pub(crate) options: VmOptions,
}

/// What the work in the VM returned.
pub(crate) struct WorkResult {
    /// The exit code.
    pub(crate) code: u8,
    /// The result as JSON, if it was asked for.
    pub(crate) result: Option<Value>,
}

impl From<u8> for WorkResult {
    fn from(code: u8) -> Self {
        Self { code, result: None }
    }
}

impl NewVm {
    /// Starts the VM, pushes files into it, does the work and prints the result
    /// if it is JSON. The VM has ended when this returns, with an error too. It
    /// is shut down cleanly if its disk is kept.
    pub(crate) async fn run(
        self,
        signals: &mut Signals,
        work: impl AsyncFnOnce(&Vm, &mut Signals) -> anyhow::Result<WorkResult>,
    ) -> anyhow::Result<u8> {
        let VmOptions {
            id,
            vcpu_count,
            mem_mib,
            machine,
            quotas,
            network,
            pushes,
            time_to_live,
        } = self.options;
        // Only a VM that others can find, or one with pushed files, is worth a
        // diff.
        let keeps_baseline = id.is_some() || !pushes.is_empty();
        let message = self.source.waiting_message();
        let builder = self.source.builder().vcpus(vcpu_count).memory_mib(mem_mib);
        let mut builder = machine.apply(builder).quotas(quotas);
        if let Some(id) = id {
            builder = builder.id(id);
        }
        if let Some(policy) = network {
            builder = builder.network(policy);
        }
        let starting = async {
            match message {
                Some(message) => Spinner::show_during(message, builder.start()).await,
                None => builder.start().await,
            }
        };
        let vm = tokio::select! {
            vm = starting => vm?,
            code = signals.next() => return Ok(code),
        };
        let preparing = async {
            vm.warnings().iter().for_each(|warning| report(warning));
            pushes.run(&vm).await?;
            if keeps_baseline {
                store_baseline(&vm).await?;
            }
            anyhow::Ok(())
        };
        let interrupted = tokio::select! {
            prepared = preparing => prepared.map(|()| None),
            code = signals.next() => Ok(Some(code)),
        };
        let work_result = match interrupted {
            Ok(None) => match time_to_live {
                None => work(&vm, signals).await,
                Some(limit) => timeout(limit, work(&vm, signals))
                    .await
                    .unwrap_or_else(|_| {
                        report(&format!("the VM is ended after {} s", limit.as_secs()));
                        Ok(TIMED_OUT.into())
                    }),
            },
            Ok(Some(code)) => Ok(code.into()),
            Err(error) => Err(error),
        };
        // From here on signals are ignored: ending the VM takes a bounded time.
        let end = end(&vm).await;
        let mut finished = work_result?;
        if vm.keeps_disk() {
            if let Some(result) = &mut finished.result {
                result["vm_end"] = json!(end);
            }
            if end.kind() != EndKind::Clean {
                report(&format!("the disk was not left clean: {end}"));
                finished.code = TOOL_FAILED;
            }
        }
        if let Some(result) = finished.result {
            print_json(&result);
        }
        Ok(finished.code)
    }
}

/// Ends the VM. A disk that is discarded need not be left clean, so the VM is
/// killed then, unless another program is stopping it already.
async fn end(vm: &Vm) -> VmEnd {
    if vm.keeps_disk() || vm.state() == VmState::Stopping {
        // `vm.ended` reports whether that worked.
        let _ = vm.stop().await;
    } else {
        // We own it, so this does not fail.
        let _ = vm.kill().await;
    }
    vm.ended().await
}
