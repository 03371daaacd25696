use std::{env, process::Command, sync::LazyLock};

/// Set if tests run with the way of other systems than Linux.
const VARIABLE: &str = "VMCELL_TEST_PORTABLE";

pub(super) fn is_portable() -> bool {
    static IS_PORTABLE: LazyLock<bool> = LazyLock::new(|| env::var_os(VARIABLE).is_some());
    *IS_PORTABLE
}

/// Runs all tests of transfers a second time.
#[test]
fn other_systems_than_linux_pass_all_tests_of_transfers() {
    if is_portable() {
        return;
    }
    let output = Command::new(env::current_exe().unwrap())
        .arg("transfer::")
        .env(VARIABLE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for test in ["hostile::no_stream_gets_out", "race::a_directory_that_is"] {
        assert!(text.contains(test), "{test} did not run: {text}");
    }
}
