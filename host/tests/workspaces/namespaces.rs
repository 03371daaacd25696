//! Tests that mount file systems, in a process with mounts of its own.

use std::{path::Path, process::Command};

/// Set in that process.
const INSIDE: &str = "VMCELL_TEST_IN_NAMESPACE";

/// Runs a test once more, in a process with other namespaces. Returns whether this is that
/// process. Where there can be none, the reason is printed, and nothing is tested.
pub(crate) fn is_inside(test: &str, options: &[&str]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let unshare = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(options).arg("--mount").arg(program);
        command
    };
    let tried = unshare(Path::new("true")).output();
    match tried {
        Ok(tried) if tried.status.success() => {}
        tried => {
            println!("not tested, because there are no namespaces here: {tried:?}");
            return false;
        }
    }
    let status = unshare(&std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    false
}

/// Mounts something, or changes what is mounted.
pub(crate) fn mount(arguments: &[&str]) {
    run("mount", arguments);
}

pub(crate) fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
}

/// Runs what a test does inside.
pub(crate) fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(test);
}
