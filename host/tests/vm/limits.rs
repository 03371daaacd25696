//! Resource limits of processes, and what happens to those that exceed them.

use std::time::{Duration, Instant};

use vmcell::{Cause, Command, Error, ExecEvent, ExecFailureKind, ReadFrom, Signal, Vm};

use crate::{COMMAND_TIMEOUT, short_timeout, start};

/// Pings the agent as long as `work` runs, and returns the longest time that a
/// reply took.
async fn slowest_reply<T>(vm: &Vm, work: impl Future<Output = T>) -> (T, Duration) {
    let mut work = std::pin::pin!(work);
    let mut slowest = Duration::ZERO;
    loop {
        let started = Instant::now();
        tokio::select! {
            biased;
            done = &mut work => return (done, slowest),
            health = vm.health() => {
                assert!(health.is_healthy(), "{health:?}");
                slowest = slowest.max(started.elapsed());
            }
        }
    }
}

#[tokio::test]
async fn a_memory_hog_is_ended_and_named_and_others_are_not() {
    let vm = start().await;
    let short_timeout = short_timeout(&vm).await;
    let bystander = vm
        .spawn(Command::from_argv(["sleep", "1000"]))
        .await
        .unwrap();
    // The hog is a descendant; its parent would report 137 and nothing else.
    let hog = Command::shell("tail /dev/zero; echo survived").memory_max(16 << 20);
    let hog = hog.timeout(COMMAND_TIMEOUT);
    let (output, slowest) = slowest_reply(&vm, vm.exec_command(hog)).await;
    let exit = output.unwrap().exit.unwrap();
    assert_eq!(exit.cause, Cause::OutOfMemory);
    assert!(exit.oom_kills >= 1);
    assert_eq!(exit.tree_ended, Some(true));
    assert!(slowest < short_timeout, "the agent took {slowest:?}");
    bystander.signal(Signal::NULL).await.unwrap();
}

#[tokio::test]
async fn a_hog_without_a_limit_of_its_own_does_not_take_the_vm_along() {
    let vm = start().await;
    let short_timeout = short_timeout(&vm).await;
    let hog = Command::from_argv(["tail", "/dev/zero"]).timeout(COMMAND_TIMEOUT);
    let (output, slowest) = slowest_reply(&vm, vm.exec_command(hog)).await;
    assert_eq!(output.unwrap().exit.unwrap().cause, Cause::OutOfMemory);
    assert!(slowest < short_timeout, "the agent took {slowest:?}");
    assert!(vm.exec(["true"]).await.unwrap().success());
}

#[tokio::test]
async fn a_fork_bomb_stays_within_its_limit_and_is_ended() {
    let vm = start().await;
    let short_timeout = short_timeout(&vm).await;
    // A shell that cannot fork exits. The first one forks once, and stays.
    let bomb = "bomb() { bomb | bomb & wait; }; bomb 2>/dev/null & while :; do :; done";
    let bomb = Command::shell(bomb)
        .pids_max(64)
        .timeout(Duration::from_secs(2));
    let (output, slowest) = slowest_reply(&vm, vm.exec_command(bomb)).await;
    let Error::ExecTimeout { partial, .. } = output.unwrap_err() else {
        panic!("it ended by itself");
    };
    let exit = partial.exit.expect("the guest confirms the end");
    assert_eq!((exit.cause, exit.tree_ended), (Cause::Timeout, Some(true)));
    assert!(slowest < short_timeout, "the agent took {slowest:?}");
    // Only PID 1, this shell and the kernel's threads are left.
    let left = vm
        .exec(["sh", "-c", "ps | grep -c '[b]omb'"])
        .await
        .unwrap();
    assert_eq!(left.stdout_text(), "0\n");
}

#[tokio::test]
async fn who_takes_every_process_of_a_guest_is_ended_and_others_go_on() {
    let vm = start().await;
    // A shell that cannot fork exits. The outer one stays, without another
    // process.
    let script =
        "(while :; do sleep 1000 <&- >&- 2>&- & done) 2>/dev/null; echo full; exec sleep 1000";
    let fill = async |tag: &str| {
        let process = vm.spawn(Command::shell(script).tag(tag)).await.unwrap();
        let mut output = process.attach(ReadFrom::Start).unwrap();
        match output.next().await.unwrap() {
            Some(ExecEvent::Stdout(bytes)) => assert_eq!(&bytes[..], b"full\n"),
            other => panic!("{other:?}"),
        }
    };
    // One command can take half of all processes at most.
    fill("one").await;
    assert!(vm.exec(["true"]).await.unwrap().success());
    fill("two").await;
    // The shells that exited because they could not fork have left some room.
    let mut sleepers = Vec::new();
    let refused = loop {
        match vm.spawn(Command::from_argv(["sleep", "1000"])).await {
            Ok(sleeper) => sleepers.push(sleeper),
            Err(refused) => break refused,
        }
        assert!(sleepers.len() < 10, "there is no end");
    };
    assert!(
        matches!(&refused, Error::Exec(failure) if failure.kind == ExecFailureKind::Limit),
        "{refused:?}"
    );
    for tag in ["one", "two"] {
        let exit = vm.processes().kill(tag).await.unwrap();
        assert_eq!((exit.cause, exit.tree_ended), (Cause::Killed, Some(true)));
        assert!(vm.exec(["true"]).await.unwrap().success());
    }
}

#[tokio::test]
async fn a_processor_share_is_a_share() {
    let vm = start().await;
    let spin = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
    // This tests the share, however long it takes.
    let spin = Command::shell(spin).timeout(Duration::from_secs(600));
    let free = vm.exec_command(spin.clone()).await.unwrap();
    let bound = spin.cpu_milli(200);
    let bound = vm.exec_command(bound).await.unwrap();
    let share = |output: &vmcell::Output| {
        let exit = output.exit.unwrap();
        (exit.user_time + exit.system_time).as_secs_f64() / exit.wall_time.as_secs_f64()
    };
    assert!(
        share(&bound) < 0.5,
        "{} against {}",
        share(&bound),
        share(&free)
    );
}

#[tokio::test]
async fn a_limit_of_one_command_is_not_that_of_the_next() {
    let vm = start().await;
    for _ in 0..3 {
        let limited = Command::shell("echo ok").memory_max(8 << 20).pids_max(4);
        assert!(vm.exec_command(limited).await.unwrap().success());
        // 32 MiB, and more processes than four.
        let free = "dd if=/dev/zero of=/dev/null bs=32M count=1 2>/dev/null; \
                    for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait; echo done";
        let output = vm.exec_command(Command::shell(free)).await.unwrap();
        assert_eq!(output.stdout_text(), "done\n");
    }
}

#[tokio::test]
async fn the_agent_goes_before_commands_and_they_before_workers_and_the_kernels_threads() {
    let vm = start().await;
    // From the first limit on, at the latest, the cpu controller of cgroups is
    // active.
    let limited = Command::shell("true").pids_max(4);
    assert!(vm.exec_command(limited).await.unwrap().success());
    // A file operation starts a worker, a child of the agent that is not a
    // command.
    vm.files().exists("/workspace").await.unwrap();
    let line = "cat /sys/fs/cgroup/vmcell/cpu.weight; \
                worker=$(grep -lx init /proc/[0-9]*/comm | grep -v /proc/1/); \
                for p in /proc/1 /proc/$$ ${worker%/comm}; do cut -d ' ' -f 19 $p/stat; done";
    let output = vm.exec_command(Command::shell(line)).await.unwrap();
    // A weight of 100 corresponds to a niceness of 0, and one of 33 to 5.
    assert_eq!(output.stdout_text(), "300\n-11\n0\n5\n", "{output:?}");
}
