//! Quotas, in real VMs. They need what `make setup` installs.
#![allow(clippy::unwrap_used)]

mod cpu_rate;
mod cpu_time;
mod disk_rate;
mod layer;
mod link_rate;
mod process;
mod workspaces;

use std::{fs, path::PathBuf, time::Duration};

use vmcell::{Command, Output, Vm, VmBuilder};

const MIB: u64 = 1 << 20;

/// For a command that ends by itself, on a machine that does many other things.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(240);

/// Returns the image of the environment `base`.
fn base() -> PathBuf {
    vmcell_rootfs::recipe::base().cached().unwrap().path
}

fn builder() -> VmBuilder {
    Vm::builder().image(base()).memory_mib(128).backend("qemu")
}

/// Runs a shell line, however it ends.
async fn shell(vm: &Vm, line: &str) -> Output {
    let command = Command::shell(line).timeout(COMMAND_TIMEOUT);
    vm.exec_command(command).await.unwrap()
}

/// Runs a shell line that succeeds, and returns what it prints.
async fn printed(vm: &Vm, line: &str) -> String {
    let output = shell(vm, line).await;
    assert!(output.success(), "{line}: {output:?}");
    output.stdout_text()
}

/// Returns the folder of the QEMU of a VM in `/proc`.
fn vmm(vm: &Vm) -> PathBuf {
    let mut processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.find(|entry| {
        let read = |file| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        read("cmdline").contains(&format!("vmcell-{}\0", vm.id()))
            && read("comm").starts_with("qemu")
    });
    found.unwrap().path()
}

/// Returns the soft and the hard limit of the QEMU of a VM with this name in proc_pid_limits(5).
fn limits(vm: &Vm, name: &str) -> [String; 2] {
    let limits = fs::read_to_string(vmm(vm).join("limits")).unwrap();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    let mut words = line.split_whitespace().map(str::to_owned);
    [words.next().unwrap(), words.next().unwrap()]
}
