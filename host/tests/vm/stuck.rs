//! Users of a guest who try to block PID 1.

use std::time::{Duration, Instant};

use vmcell::{Cause, Command, Error};

use crate::start;

/// Far more than it takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(300);

#[tokio::test]
async fn a_user_who_stops_all_its_processes_does_not_stop_the_guest() {
    let vm = start().await;
    let stopper = "while :; do kill -STOP -1 2>/dev/null; done";
    let stopper = vm
        .spawn(Command::shell(stopper).user("cell"))
        .await
        .unwrap();
    // The outcome of the race is random, so it is repeated until it has
    // happened.
    let deadline = Instant::now() + TEST_TIMEOUT;
    let (mut stopped, mut tried) = (0, 0);
    while stopped == 0 || tried < 30 {
        assert!(Instant::now() < deadline, "nobody was stopped");
        tried += 1;
        let victim = Command::new("true")
            .user("cell")
            .timeout(Duration::from_secs(1));
        let victim = vm.exec_command(victim);
        // Root's commands still run meanwhile.
        let (victim, other) = tokio::join!(victim, vm.exec(["true"]));
        assert!(other.unwrap().success());
        match victim {
            Ok(output) => assert!(output.success(), "{output:?}"),
            Err(Error::ExecTimeout { .. }) => stopped += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(stopper.kill().await.unwrap().cause, Cause::Killed);
    let freed = vm.exec_with(["true"], |command| command.user("cell")).await;
    assert!(freed.unwrap().success());
}
