//! A PID 1 that embeds the agent in a loop of its own: the example of the agent's
//! library.

use std::path::{Path, PathBuf};

#[path = "../../build/guest_program.rs"]
#[allow(dead_code, reason = "the build script uses the rest")]
mod guest_program;

use vmcell::{End, VmState};

use crate::builder;

/// Builds the example as the agent is built.
fn example() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = guest_program::target();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest-examples");
    let mut cargo = guest_program::cargo().unwrap();
    let status = cargo
        .current_dir(workspace)
        .args(["build", "--quiet", "--package", "vmcell-agent"])
        .args(["--example", "own_init", "--profile", "guest"])
        .args(["--target", target, "--target-dir"])
        .arg(&folder)
        .status()
        .unwrap();
    assert!(status.success(), "the example could not be built: {status}");
    folder.join(target).join("guest/examples/own_init")
}

#[tokio::test]
async fn somebody_elses_pid_1_serves_the_host_with_the_agent_in_its_own_loop() {
    let example = tokio::task::spawn_blocking(example).await.unwrap();
    let vm = builder().agent(example).start().await.unwrap();
    let output = vm.exec(["sh", "-c", "echo $PPID; exit 7"]).await.unwrap();
    assert_eq!(
        (output.stdout_text(), output.code()),
        ("1\n".into(), Some(7))
    );
    assert_eq!(output.exit.unwrap().tree_ended, Some(true));
    // An orphan is the child of PID 1, and not the agent's.
    let script = "(sleep 0.1 &); until [ -e /run/own-init ]; do sleep 0.1; done; cat /run/own-init";
    let output = vm.exec(["sh", "-c", script]).await.unwrap();
    assert!(output.stdout_text().ends_with(" others ended\n"));
    let files = vm.files();
    files.write("/root/file", "by a worker").await.unwrap();
    assert_eq!(files.read("/root/file").await.unwrap(), b"by a worker");
    vm.stop().await.unwrap();
    assert!(matches!(vm.state(), VmState::Ended(end) if end.reason == End::Stopped));
}
