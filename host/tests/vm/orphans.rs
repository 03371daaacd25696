//! Orphaned processes.

use vmcell::Command;

use crate::start;

#[tokio::test]
async fn orphans_are_reaped_and_no_exit_code_is_mixed_up() {
    let vm = start().await;
    // Each one is forked twice, so PID 1 inherits it; each exits with another
    // code than the command that the agent waits for.
    let script =
        "i=0; while [ $i -lt 300 ]; do (sh -c \"exit $((i % 200))\" & ) ; i=$((i+1)); done";
    let orphans = vm.spawn(Command::shell(script)).await.unwrap();
    for code in 0..50u8 {
        let output = vm
            .exec_command(Command::shell(format!("exit {code}")))
            .await;
        assert_eq!(output.unwrap().code(), Some(code));
    }
    assert!(orphans.wait().await.unwrap().success());
    let zombies = "while grep -l '^State:.*zombie' /proc/[0-9]*/status 2>/dev/null; do :; done";
    assert!(vm.exec(["sh", "-c", zombies]).await.unwrap().success());
}
