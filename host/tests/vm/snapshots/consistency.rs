//! Snapshots of VMs that write to their disk meanwhile.

use super::{Folder, start, text};
use vmcell::{Command, Vm};

/// Writes files without end, and records the digest of each in memory.
const WRITER: &str = "i=0; mkdir -p /root/files; while true; do i=$((i+1)); \
     dd if=/dev/urandom of=/root/files/$i bs=1k count=$((i % 200 + 1)) 2>/dev/null; \
     (cd /root/files && sha256sum $i) >> /run/digests; \
     [ $((i % 7)) = 0 ] && sync; \
     [ $i -gt 40 ] && rm -f /root/files/$((i - 40)); done";

/// Checks all files that are there against the digests in memory: first through the page
/// cache, then from the disk.
const CHECK: &str = "cd /root/files; ls > /run/there; \
     awk 'NR == FNR { there[$1]; next } $2 in there' /run/there /run/digests > /run/wanted; \
     [ $(wc -l < /run/wanted) -gt 5 ] || { echo \"only $(cat /run/wanted)\"; exit 1; }; \
     sha256sum -c /run/wanted && sync && echo 3 > /proc/sys/vm/drop_caches && \
     sha256sum -c /run/wanted";

#[tokio::test]
async fn the_disk_and_the_memory_of_a_restored_vm_agree() {
    let vm = start().await;
    vm.spawn(Command::shell(WRITER).tag("writer"))
        .await
        .unwrap();
    text(
        &vm,
        "until [ $(wc -l < /run/digests) -gt 20 ]; do sleep 0.05; done",
    )
    .await;
    for round in 0..3 {
        let folder = Folder::new();
        vm.snapshot(folder.path()).await.unwrap();
        text(
            &vm,
            &format!(
                "until [ $(wc -l < /run/digests) -gt {} ]; do sleep 0.05; done",
                40 + 20 * round
            ),
        )
        .await;
        let copy = Vm::restore(folder.path()).await.unwrap();
        // It writes on, as if nothing had happened.
        let lines = text(&copy, "wc -l < /run/digests").await;
        text(
            &copy,
            &format!("until [ $(wc -l < /run/digests) -gt $(({lines} + 5)) ]; do sleep 0.05; done"),
        )
        .await;
        for vm in [&vm, &copy] {
            vm.processes()
                .get("writer")
                .await
                .unwrap()
                .unwrap()
                .signal(vmcell::Signal::STOP)
                .await
                .unwrap();
            text(vm, CHECK).await;
            vm.processes()
                .get("writer")
                .await
                .unwrap()
                .unwrap()
                .signal(vmcell::Signal::CONT)
                .await
                .unwrap();
        }
        copy.stop().await.unwrap();
    }
}
