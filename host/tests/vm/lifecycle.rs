//! How VMs end, and that they leave nothing behind.

use std::time::{Duration, Instant};

use vmcell::{Acceleration, Command, End, Error, ExecEvent, VmState};

use crate::{base, builder, processes::VmmProcess, short_timeout, start};

const END_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_stopped_vm_is_gone_and_says_so() {
    let vm = start().await;
    let process = VmmProcess::of(&vm);
    vm.stop().await.unwrap();
    assert!(matches!(vm.state(), VmState::Ended(end) if end.reason == End::Stopped));
    assert!(process.ends_within(Duration::ZERO));
    let error = vm.exec(["true"]).await.unwrap_err();
    assert!(matches!(error, Error::Gone(End::Stopped)), "{error:?}");
    assert!(!vm.health().await.is_healthy());
    // Ending it again, in either way, does nothing.
    vm.stop().await.unwrap();
    vm.kill().await.unwrap();
    assert_eq!(vm.ended().await.reason, End::Stopped);
}

#[tokio::test]
async fn stopping_asks_processes_to_end() {
    let vm = start().await;
    let script = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let mut events = vm
        .exec_stream(Command::new("sh").args(["-c", script]))
        .unwrap();
    let mut printed = Vec::new();
    while printed != b"ready\n" {
        if let Some(ExecEvent::Stdout(bytes)) = events.next().await.unwrap() {
            printed.extend(bytes);
        }
    }
    let (stopped, _) = tokio::join!(vm.stop(), async {
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
async fn dropping_the_last_handle_ends_the_vm() {
    let vm = start().await;
    let process = VmmProcess::of(&vm);
    let second = vm.clone();
    drop(vm);
    assert!(second.exec(["true"]).await.unwrap().success());
    drop(second);
    assert!(process.ends_within(END_TIMEOUT));
}

/// Input that exceeds every window, for a program that never reads it.
#[tokio::test]
async fn input_that_waits_for_its_reader_keeps_no_vm_alive() {
    let vm = start().await;
    let process = VmmProcess::of(&vm);
    let sleeping = Command::from_argv(["sleep", "1000"]).stdin(vec![0; 16 << 20]);
    drop(vm.spawn(sleeping).await.unwrap());
    drop(vm);
    let ended = tokio::task::spawn_blocking(move || process.ends_within(END_TIMEOUT));
    assert!(ended.await.unwrap());
}

#[tokio::test]
async fn cancelling_a_start_ends_the_vm() {
    // The mark becomes an argument on the VMM's command line.
    let mark = "cancelled-start";
    let starting = builder().kernel_arguments(mark).start();
    let started = tokio::time::timeout(Duration::from_millis(300), starting).await;
    assert!(started.is_err(), "it cannot have booted");
    if let Some(process) = VmmProcess::find(|word| word.ends_with(mark)) {
        assert!(process.ends_within(END_TIMEOUT));
    }
}

#[test]
fn a_runtime_that_goes_away_takes_its_vms_with_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let vm = runtime.block_on(start());
    let process = VmmProcess::of(&vm);
    drop(runtime);
    assert!(process.ends_within(END_TIMEOUT));
    drop(vm);
}

#[tokio::test]
async fn a_killed_vmm_is_a_typed_error_soon() {
    let vm = start().await;
    let short_timeout = short_timeout(&vm).await;
    let process = VmmProcess::of(&vm);
    let mut events = vm.exec_stream(Command::new("sleep").arg("1000")).unwrap();
    assert!(matches!(
        events.next().await.unwrap(),
        Some(ExecEvent::Started { .. })
    ));
    process.kill();
    let killed = Instant::now();
    let error = events.next().await.unwrap_err();
    assert!(killed.elapsed() < short_timeout, "{:?}", killed.elapsed());
    assert!(matches!(error, Error::Gone(End::Died)), "{error:?}");
    let error = vm.exec(["true"]).await.unwrap_err();
    assert!(matches!(error, Error::Gone(End::Died)), "{error:?}");
}

#[tokio::test]
async fn a_guest_that_resets_itself_has_died() {
    let vm = start().await;
    let error = vm.exec(["reboot", "-f"]).await.unwrap_err();
    assert!(matches!(error, Error::Gone(End::Died)), "{error:?}");
}

#[tokio::test]
async fn two_vms_share_an_image_and_nothing_else() {
    let image = base();
    let before = std::fs::read(&image).unwrap();
    let (first, second) = tokio::join!(builder().start(), builder().start());
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_ne!(first.id(), second.id());
    let script = "echo secret > /workspace/file; sync";
    assert!(first.exec(["sh", "-c", script]).await.unwrap().success());
    let seen = second.exec(["ls", "/workspace"]).await.unwrap();
    assert_eq!(seen.stdout_text(), "");
    let boots = ["cat", "/proc/sys/kernel/random/boot_id"];
    assert_ne!(
        first.exec(boots).await.unwrap().stdout,
        second.exec(boots).await.unwrap().stdout
    );
    first.stop().await.unwrap();
    assert!(second.exec(["true"]).await.unwrap().success());
    second.kill().await.unwrap();
    assert!(
        std::fs::read(&image).unwrap() == before,
        "the image was written"
    );
}

#[tokio::test]
async fn health_tells_how_the_vm_runs() {
    let vm = start().await;
    let health = vm.health().await;
    assert!(health.is_healthy(), "{health:?}");
    assert_eq!(health.backend, "qemu");
    assert!(health.agent.starts_with("vmcell-agent "));
    assert!(!health.acceleration.unwrap().reason.is_empty());
    vm.kill().await.unwrap();

    let vm = builder()
        .acceleration(Acceleration::Tcg)
        .start()
        .await
        .unwrap();
    let chosen = vm.health().await.acceleration.unwrap();
    assert_eq!(chosen.acceleration, Acceleration::Tcg);
    assert_eq!(chosen.reason, "asked for by the caller");
}

#[tokio::test]
async fn sixty_four_megabytes_are_enough() {
    let vm = builder().memory_mib(64).start().await.unwrap();
    let script =
        "dd if=/dev/zero of=/workspace/file bs=1M count=100 2>/dev/null && wc -c < /workspace/file";
    // This tests memory, not time.
    let writing = Command::shell(script).timeout(10 * END_TIMEOUT);
    let output = vm.exec_command(writing).await.unwrap();
    assert_eq!(output.stdout_text(), "104857600\n", "{output:?}");
}
