//! The clock of a guest.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use vmcell::Vm;

use crate::builder;

fn seconds() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs_f64()
}

/// Asserts that the guest's clock is the host's, give or take a second.
pub(crate) async fn assert_clock_matches(vm: &Vm) {
    let before = seconds();
    let output = vm.exec(["date", "+%s"]).await.unwrap();
    let after = seconds();
    let guest: f64 = output.stdout_text().trim().parse().unwrap();
    // `date` prints whole seconds.
    let earliest = before.floor() - 1.0;
    assert!(
        (earliest..=after + 1.0).contains(&guest),
        "{guest} is not within {before} to {after}"
    );
}

/// Creates a script that starts QEMU after three seconds.
fn slow_qemu() -> tempfile::TempPath {
    let qemu = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("qemu-system-x86_64"))
        .find(|program: &PathBuf| program.exists())
        .unwrap();
    let script = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempfile()
        .unwrap()
        .into_temp_path();
    let text = format!("#!/bin/sh\n/bin/sleep 3\nexec {} \"$@\"\n", qemu.display());
    std::fs::write(&script, text).unwrap();
    script
}

#[tokio::test]
async fn the_clock_of_a_guest_that_was_slow_to_boot_is_right() {
    let qemu = slow_qemu();
    let vm = builder()
        .qemu(&*qemu)
        .backend("qemu")
        .start()
        .await
        .unwrap();
    assert_clock_matches(&vm).await;
}

#[tokio::test]
async fn a_new_link_leaves_the_clock_alone() {
    let vm = builder().start().await.unwrap();
    assert_clock_matches(&vm).await;
    let set = vm.exec(["date", "-s", "@1000000000"]).await.unwrap();
    assert!(set.success(), "{set:?}");
    vm.reconnect().unwrap();
    let output = vm.exec(["date", "+%s"]).await.unwrap();
    let guest: u64 = output.stdout_text().trim().parse().unwrap();
    assert!(guest < 1_100_000_000, "{guest}");
}
