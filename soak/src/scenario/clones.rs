//! Snapshots, and VMs that are restored from them.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use vmcell::{Command, Vm, snapshot::SnapshotOptions};

use super::machine;
use crate::{
    interference::Interference,
    random::Random,
    setup::{self, Setup},
};

pub(super) async fn snapshot_and_restore(setup: &Setup, random: &mut Random) -> Result<()> {
    let folder = setup::scratch()?;
    let path = folder.path().join("snapshot");
    let vm = setup.vm(&random.name()).start().await?;
    let count = random.size_below(4 << 20);
    let bytes = random.bytes(count);
    vm.files().write("/root/data", bytes.clone()).await?;
    vm.files().write("/dev/shm/data", bytes.clone()).await?;
    let sleeper = Command::new("sleep").arg("100000").tag("sleeper");
    let pid = vm.spawn(sleeper).await?.pid();
    let options = SnapshotOptions::new()
        .compress(random.one_in(2))
        .end_vm(random.one_in(2));
    if random.one_in(6) {
        // Dropped at some moment: there is a whole snapshot then, or none.
        let time = random.time_below(std::time::Duration::from_secs(2));
        let _ = tokio::time::timeout(time, vm.snapshot_with(&path, options)).await;
        if !path.exists() {
            // It goes on, if not at once.
            return machine::end(vm, Interference::None, random).await;
        }
    } else {
        vm.snapshot_with(&path, options).await?;
    }
    let copies = (0..random.below(2) + 1).map(|_| {
        let mut random = random.fork();
        let (path, bytes) = (&path, &bytes);
        async move {
            let name = random.name();
            let builder = Vm::builder().snapshot(path).id(setup.id(&name));
            let copy = builder.start().await?;
            for file in ["/root/data", "/dev/shm/data"] {
                let found = copy.files().read(file).await?;
                ensure!(found == *bytes, "{file} is another one in a copy");
            }
            let sleeper = copy.processes().get("sleeper").await?;
            ensure!(
                sleeper.is_some_and(|process| process.pid() == pid),
                "a process is not in a copy"
            );
            let random_id = "cat /proc/sys/kernel/random/uuid";
            let uuid = copy
                .exec_command(Command::shell(random_id))
                .await?
                .stdout_text();
            let interference = Interference::choose(setup.kind, &mut random);
            machine::use_vm(&copy, setup.kind, interference, &mut random).await?;
            machine::end(copy, interference, &mut random).await?;
            anyhow::Ok(uuid)
        }
    });
    let copies: Vec<_> = copies.collect();
    let count = copies.len();
    let numbers: BTreeSet<String> = try_join_all(copies).await?.into_iter().collect();
    ensure!(
        numbers.len() == count,
        "copies have the same random numbers"
    );
    if vm.state() == vmcell::VmState::Running {
        machine::end(vm, Interference::None, random).await?;
    }
    Ok(())
}
