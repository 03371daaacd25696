//! VMs that are paused and resumed.

use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use vmcell::{Command, End, EndKind, ExecEvent, LinkKind, Vm, VmState, WhilePaused};

use crate::{
    COMMAND_TIMEOUT, base, clock::assert_clock_matches, processes::VmmProcess, short_timeout,
};

/// Starts a VM with the default link, whatever link the other tests use.
async fn start() -> Vm {
    let builder = Vm::builder().image(base()).memory_mib(128);
    builder.start().await.unwrap()
}

/// How long a pause takes in these tests.
const PAUSE: Duration = Duration::from_secs(2);

/// Returns how long the guest has been running by its own clock.
async fn uptime(vm: &Vm) -> Duration {
    let output = vm.exec(["cat", "/proc/uptime"]).await.unwrap();
    let text = output.stdout_text();
    let seconds = text.split(' ').next().unwrap().parse().unwrap();
    Duration::from_secs_f64(seconds)
}

#[tokio::test]
async fn time_stands_still_in_a_paused_guest_and_its_clock_is_right_afterwards() {
    let vm = start().await;
    let before = uptime(&vm).await;
    let asked = Instant::now();
    vm.pause().await.unwrap();
    assert_eq!(vm.state(), VmState::Paused);
    let health = vm.health().await;
    assert_eq!((health.state, health.round_trip), (VmState::Paused, None));
    sleep(PAUSE).await;
    vm.pause().await.unwrap();
    vm.resume().await.unwrap();
    assert_eq!(vm.state(), VmState::Running);
    assert_clock_matches(&vm).await;
    let passed = uptime(&vm).await - before;
    let limit = asked.elapsed() - PAUSE + Duration::from_millis(100);
    assert!(passed < limit, "{passed:?} of {limit:?}");
    vm.resume().await.unwrap();
    assert!(vm.health().await.is_healthy());
}

#[tokio::test]
async fn requests_wait_until_the_vm_is_resumed_and_find_the_clock_set() {
    let vm = start().await;
    let usual = short_timeout(&vm).await;
    vm.pause().await.unwrap();
    let command = vm.exec(["date", "+%s"]);
    let mut command = Box::pin(command);
    assert!(timeout(usual, &mut command).await.is_err());
    let resumed = std::time::SystemTime::now();
    vm.resume().await.unwrap();
    let output = command.await.unwrap();
    let printed: u64 = output.stdout_text().trim().parse().unwrap();
    let resumed = resumed.duration_since(std::time::UNIX_EPOCH).unwrap();
    // A guest whose clock is not set would be a second late at least.
    assert!(printed >= resumed.as_secs(), "{printed} {resumed:?}");
}

#[tokio::test]
async fn requests_are_refused_if_the_caller_says_so() {
    let vm = start().await;
    let client = Vm::attach(vm.id()).await.unwrap();
    vm.pause_with(WhilePaused::Fail).await.unwrap();
    let error = vm.exec(["true"]).await.unwrap_err();
    assert_eq!(error.code(), "paused", "{error}");
    let error = vm.files().read("/etc/passwd").await.unwrap_err();
    assert_eq!(error.code(), "paused", "{error}");
    assert!(client.exec(["true"]).await.is_err());
    // What others pause as well keeps its requests.
    vm.pause().await.unwrap();
    let mut command = Box::pin(vm.exec(["true"]));
    assert!(
        timeout(Duration::from_millis(200), &mut command)
            .await
            .is_err()
    );
    vm.resume().await.unwrap();
    assert!(command.await.unwrap().success());
    assert!(client.exec(["true"]).await.unwrap().success());
}

#[tokio::test]
async fn the_time_of_a_pause_does_not_count_towards_a_timeout() {
    let vm = start().await;
    let limit = short_timeout(&vm).await + Duration::from_secs(1);
    let command = Command::shell("echo started; sleep 1; echo ended").timeout(limit);
    let mut events = vm.exec_stream(command).unwrap();
    loop {
        match events.next().await.unwrap().unwrap() {
            ExecEvent::Stdout(_) => break,
            _ => continue,
        }
    }
    vm.pause().await.unwrap();
    sleep(limit).await;
    vm.resume().await.unwrap();
    let output = events.wait_with_output().await.unwrap();
    assert_eq!(output.stdout_text(), "ended\n");

    // The host's own timeout does not count it either.
    let running = vm.exec_command(Command::shell("sleep 1").timeout(limit));
    let pausing = async {
        vm.pause().await.unwrap();
        sleep(limit).await;
        vm.resume().await.unwrap();
    };
    let (output, ()) = tokio::join!(running, pausing);
    assert!(output.unwrap().success());
}

#[tokio::test]
async fn a_program_that_is_attached_can_pause_and_sees_who_does() {
    let vm = start().await;
    let client = Vm::attach(vm.id()).await.unwrap();
    client.pause().await.unwrap();
    assert_eq!(vm.state(), VmState::Paused);
    let status = |vms: Vec<vmcell::VmInfo>| {
        let found = vms.into_iter().find(|info| info.id == vm.id());
        found.unwrap().status.name()
    };
    assert_eq!(status(Vm::list().await.unwrap()), "paused");
    // Another one that attaches knows it from the beginning.
    let late = Vm::attach(vm.id()).await.unwrap();
    assert_eq!(late.state(), VmState::Paused);
    late.resume().await.unwrap();
    assert_eq!(vm.state(), VmState::Running);
    assert_eq!(status(Vm::list().await.unwrap()), "running");
    assert!(client.exec(["true"]).await.unwrap().success());
    vm.kill().await.unwrap();
    let error = client.pause().await.unwrap_err();
    assert_eq!(error.code(), "no-such-vm", "{error}");
    let error = vm.pause().await.unwrap_err();
    assert_eq!(error.code(), "gone", "{error}");
}

#[tokio::test]
async fn many_who_pause_and_resume_at_once_leave_a_vm_that_works() {
    let vm = start().await;
    let changes = (0..40).map(|number| {
        let vm = vm.clone();
        tokio::spawn(async move {
            match number % 2 {
                0 => vm.pause().await,
                _ => vm.resume().await,
            }
        })
    });
    let changes: Vec<_> = changes.collect();
    for change in changes {
        change.await.unwrap().unwrap();
    }
    vm.resume().await.unwrap();
    assert!(vm.exec(["true"]).await.unwrap().success());
}

#[tokio::test]
async fn a_paused_vm_can_be_stopped_and_killed() {
    let vm = start().await;
    vm.pause_with(WhilePaused::Fail).await.unwrap();
    vm.stop().await.unwrap();
    assert_eq!(vm.ended().await.reason, End::Stopped);
    let vm = start().await;
    vm.pause().await.unwrap();
    vm.kill().await.unwrap();
    assert_eq!(vm.ended().await.reason, End::Killed);
    let vm = start().await;
    vm.pause().await.unwrap();
    VmmProcess::of(&vm).kill();
    assert_eq!(vm.ended().await.kind(), EndKind::Crashed);
    let error = vm.resume().await.unwrap_err();
    assert_eq!(error.code(), "gone", "{error}");
}

#[tokio::test]
async fn a_link_that_is_dropped_in_a_pause_is_made_again_after_it() {
    let vm = start().await;
    let mut events = vm
        .exec_stream(Command::shell("echo one; read line; echo two").stdin_stream())
        .unwrap();
    vm.pause().await.unwrap();
    vm.reconnect().unwrap();
    // Longer than the agent may take to answer on a new link.
    sleep(Duration::from_secs(6)).await;
    vm.resume().await.unwrap();
    let input = events.input();
    assert!(input.write("x\n").await);
    let mut printed = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        if let ExecEvent::Stdout(bytes) = event {
            printed.extend_from_slice(&bytes);
        }
    }
    assert_eq!(printed, b"one\ntwo\n");
}

#[tokio::test]
async fn megabytes_in_both_directions_survive_pauses() {
    let vm = start().await;
    let bytes: Vec<u8> = (0..8u32 << 20).map(|number| (number % 251) as u8).collect();
    let command = Command::new("cat")
        .stdin(bytes.clone())
        .timeout(COMMAND_TIMEOUT);
    let command = command.max_output(bytes.len());
    let echoing = vm.exec_command(command);
    let pausing = async {
        loop {
            vm.pause().await.unwrap();
            sleep(Duration::from_millis(20)).await;
            vm.resume().await.unwrap();
            sleep(Duration::from_millis(20)).await;
        }
    };
    let output = tokio::select! {
        output = echoing => output.unwrap(),
        () = pausing => unreachable!(),
    };
    assert!(output.success());
    assert!(output.stdout == bytes);
}

#[tokio::test]
async fn a_link_that_does_not_survive_a_pause_is_named() {
    let builder = Vm::builder().image(base()).link(LinkKind::HybridVsock);
    let vm = builder.memory_mib(128).start().await.unwrap();
    let error = vm.pause().await.unwrap_err();
    assert_eq!(error.code(), "backend-lacks", "{error}");
    assert!(
        error.to_string().contains("choose the link serial"),
        "{error}"
    );
    assert!(vm.exec(["true"]).await.unwrap().success());
}
