//! How it ends, and that it leaves nothing behind.

use std::time::{Duration, Instant};

use vmcell::{Command, End, Error, ExecEvent, VmState};
use vmcell_wire::namespaces::LINK_FD;

use crate::{
    builder,
    leftovers::{Processes, leftovers, mounts},
    start,
};

/// A timeout for what takes a moment on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn stopped_or_killed_it_is_gone_with_all_that_ran_in_it() {
    for stop in [true, false] {
        let Some(vm) = start().await else { return };
        let processes = Processes::of(vm.id());
        assert!(processes.count() >= 2, "the supervisor and PID 1");
        vm.spawn(Command::shell(
            "trap '' TERM; setsid sleep 1000 & sleep 1000",
        ))
        .await
        .unwrap();
        match stop {
            true => vm.stop().await.unwrap(),
            false => vm.kill().await.unwrap(),
        }
        assert!(processes.end_within(Duration::ZERO));
        assert!(leftovers(vm.id()).is_empty());
        let end = if stop { End::Stopped } else { End::Killed };
        assert!(matches!(vm.state(), VmState::Ended(ended) if ended.reason == end));
        let error = vm.exec(["true"]).await.unwrap_err();
        assert!(
            matches!(error, Error::Gone(gone) if gone == end),
            "{error:?}"
        );
        // Stopping a VM that was killed is not reported as a success.
        assert_eq!(vm.stop().await.is_ok(), stop);
    }
}

#[tokio::test]
async fn an_agent_that_gives_up_is_heard_out() {
    let Some(builder) = builder() else { return };
    let agent = tempfile::NamedTempFile::new().unwrap();
    // It pauses between closing the link and printing the reason.
    let script = format!("#!/bin/sh\nexec {LINK_FD}>&-\nsleep 0.1\necho no luck >&2\n");
    std::fs::write(agent.path(), script).unwrap();
    let error = builder.agent(agent.path()).start().await.unwrap_err();
    assert!(error.to_string().ends_with("no luck"), "{error}");
}

#[tokio::test]
async fn stopping_asks_processes_to_end() {
    let Some(vm) = start().await else { return };
    let script = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let mut events = vm.exec_stream(Command::shell(script)).unwrap();
    let mut printed = Vec::new();
    while printed != b"ready\n" {
        if let Some(ExecEvent::Stdout(bytes)) = events.next().await.unwrap() {
            printed.extend(bytes);
        }
    }
    let (stopped, ()) = tokio::join!(vm.stop(), async {
        while let Ok(Some(event)) = events.next().await {
            if let ExecEvent::Stdout(bytes) = event {
                printed.extend(bytes);
            }
        }
    });
    stopped.unwrap();
    assert_eq!(printed, b"ready\nasked\n");
}

#[tokio::test]
async fn dropping_the_last_handle_ends_it() {
    let Some(vm) = start().await else { return };
    let (id, processes) = (vm.id().to_owned(), Processes::of(vm.id()));
    let mut ended = vm.exec_stream(Command::new("sleep").arg("1000")).unwrap();
    ended.next().await.unwrap();
    drop((vm, ended));
    assert!(processes.end_within(TIMEOUT), "{id}");
}

#[test]
fn a_runtime_that_goes_away_takes_it_along() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(vm) = runtime.block_on(start()) else {
        return;
    };
    let processes = Processes::of(vm.id());
    drop(runtime);
    assert!(processes.end_within(TIMEOUT));
    assert!(leftovers(vm.id()).is_empty());
}

#[tokio::test]
async fn a_killed_keeper_takes_all_with_it_and_is_a_typed_error_soon() {
    let Some(vm) = start().await else { return };
    let processes = Processes::of(vm.id());
    let mut events = vm.exec_stream(Command::new("sleep").arg("1000")).unwrap();
    events.next().await.unwrap();
    processes.kill_supervisor();
    let killed = Instant::now();
    let error = events.next().await.unwrap_err();
    assert!(killed.elapsed() < TIMEOUT, "{:?}", killed.elapsed());
    assert!(matches!(error, Error::Gone(End::Died)), "{error:?}");
    assert!(processes.end_within(TIMEOUT));
    assert!(leftovers(vm.id()).is_empty());
}

#[tokio::test]
async fn who_resets_the_machine_ends_only_this_one() {
    let Some(vm) = start().await else { return };
    // PID 1 cannot be killed from inside.
    assert!(vm.exec(["kill", "-9", "1"]).await.unwrap().success());
    assert!(vm.exec(["true"]).await.unwrap().success());
    let error = vm.exec(["reboot", "-f"]).await.unwrap_err();
    assert!(matches!(error, Error::Gone(End::Died)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_start_leaves_nothing() {
    let Some(builder) = builder() else { return };
    let before = mounts();
    for delay in 0..20 {
        let id = format!("cancelled-{}-{delay}", std::process::id());
        let starting = builder.clone().id(&id).start();
        let started = tokio::time::timeout(Duration::from_millis(delay), starting).await;
        drop(started);
        // A launch that was under way is completed first, and then ended.
        let deadline = Instant::now() + 3 * TIMEOUT;
        while !(Processes::of(&id).end_within(TIMEOUT) && leftovers(&id).is_empty()) {
            assert!(Instant::now() < deadline, "{id}: {:?}", leftovers(&id));
        }
    }
    assert_eq!(before, mounts());
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_at_once_started_and_ended_at_random_leave_nothing() {
    let Some(builder) = builder() else { return };
    let before = mounts();
    let workers: Vec<_> = (0..20)
        .map(|worker| tokio::spawn(start_and_end(builder.clone(), worker)))
        .collect();
    for worker in workers {
        for (id, processes) in worker.await.unwrap() {
            assert!(processes.end_within(TIMEOUT), "{id}");
            assert!(leftovers(&id).is_empty());
            assert_eq!(Processes::of(&id).count(), 0, "{id}");
        }
    }
    assert_eq!(before, mounts());
}

/// Starts some VMs, one after the other, and ends them in different ways,
/// chosen pseudo-randomly with the worker's number as the seed.
async fn start_and_end(builder: vmcell::VmBuilder, worker: u64) -> Vec<(String, Processes)> {
    let mut random = worker.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut ended = Vec::new();
    for _ in 0..3 {
        let vm = builder.clone().start().await.unwrap();
        ended.push((vm.id().to_owned(), Processes::of(vm.id())));
        vm.spawn(Command::shell("sleep 1000")).await.unwrap();
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        match random >> 62 {
            0 => vm.stop().await.unwrap(),
            1 => vm.kill().await.unwrap(),
            2 => Processes::of(vm.id()).kill_supervisor(),
            _ => {
                assert!(vm.exec(["true"]).await.unwrap().success());
                vm.stop().await.unwrap();
            }
        }
        vm.ended().await;
    }
    ended
}
