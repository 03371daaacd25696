//! Links other than the default: vsock, through the program
//! `vhost-device-vsock`, which `make vsock` installs. Without it these tests
//! are skipped with a message.

use std::{fs, path::PathBuf, time::Instant};

use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use vmcell::{
    Cause, Command, End, Error, ExecEvent, LinkKind, Vm, VmBuilder, VmState,
    backend::{Backends, Qemu, RunFolder},
};

use crate::{base, builder};

fn vsock() -> VmBuilder {
    builder().link(LinkKind::HybridVsock)
}

/// Returns `None` if the machine lacks the program.
async fn start() -> Option<Vm> {
    match vsock().start().await {
        Err(error @ Error::Missing { .. }) => {
            eprintln!("skipped: {error}");
            None
        }
        started => Some(started.unwrap()),
    }
}

fn folder_of(vm: &Vm) -> PathBuf {
    RunFolder::base().join(vm.id())
}

/// Returns the processes that have the VM's id among their arguments: QEMU, and
/// its device program.
fn programs_of(id: &str) -> Vec<(i32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let line = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        if line.contains(id) {
            found.push((pid, line));
        }
    }
    found
}

#[tokio::test]
async fn health_says_which_link_there_is_and_why() {
    let Some(vm) = start().await else { return };
    let link = vm.health().await.link;
    assert_eq!(link.kind, LinkKind::HybridVsock);
    assert_eq!(link.reason, "asked for by the caller");
    let output = vm.exec(["cat", "/proc/devices"]).await.unwrap();
    // The device of the other link does not exist.
    assert!(!output.stdout_text().contains("virtio-portsdev"));

    let client = Vm::attach(vm.id()).await.unwrap();
    assert_eq!(client.health().await.link.kind, LinkKind::Relay);
    assert!(client.exec(["true"]).await.unwrap().success());

    let usual = Vm::builder().image(base()).memory_mib(128);
    let other = usual.start().await.unwrap();
    let link = other.health().await.link;
    assert_eq!(link.kind, LinkKind::Serial);
    assert_eq!(link.reason, "it works everywhere");
}

#[tokio::test]
async fn a_vm_that_is_stopped_leaves_no_program_and_no_folder() {
    let Some(vm) = start().await else { return };
    let (id, folder) = (vm.id().to_owned(), folder_of(&vm));
    assert!(folder.is_dir());
    assert_eq!(programs_of(&id).len(), 2);
    vm.stop().await.unwrap();
    assert!(matches!(vm.state(), VmState::Ended(end) if end.reason == End::Stopped));
    assert_eq!(programs_of(&id), []);
    assert!(!folder.exists());
}

#[tokio::test]
async fn everything_arrives_in_both_directions() {
    const SIZE: usize = 64 * 1024 * 1024;
    let Some(vm) = start().await else { return };
    let bytes: Vec<u8> = (0..SIZE as u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let sum = format!("{:x}", Sha256::digest(&bytes));
    let mut reader = vm
        .exec_stream(Command::from_argv(["sha256sum"]).stdin_stream())
        .unwrap()
        .into_parts();
    let mut stdin = reader.stdin;
    let sending = tokio::spawn(async move {
        stdin.write_all(&bytes).await.unwrap();
        stdin.shutdown().await.unwrap();
    });
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut reader.stdout, &mut text)
        .await
        .unwrap();
    sending.await.unwrap();
    assert!(text.starts_with(&sum), "{text} is not {sum}");

    let line = "head -c 67108864 /dev/urandom > /tmp/random; sha256sum < /tmp/random >&2; \
                cat /tmp/random";
    let mut stream = vm.exec_stream(Command::shell(line)).unwrap();
    let (mut received, mut digest, mut printed) = (0, Sha256::new(), Vec::new());
    while let Some(event) = stream.next().await.unwrap() {
        match event {
            ExecEvent::Stdout(bytes) => {
                received += bytes.len();
                digest.update(&bytes);
            }
            ExecEvent::Stderr(bytes) => printed.extend(bytes),
            ExecEvent::Exited(exit) => assert_eq!(exit.cause, Cause::Code(0)),
            _ => {}
        }
    }
    assert_eq!(received, SIZE);
    let printed = String::from_utf8(printed).unwrap();
    let sum = format!("{:x}", digest.finalize());
    assert!(printed.starts_with(&sum), "{printed} is not {sum}");
}

#[tokio::test]
async fn a_stream_goes_on_at_its_byte_however_often_its_connection_breaks() {
    let Some(vm) = start().await else { return };
    let expected: String = (1..=600_000).map(|number| format!("{number}\n")).collect();
    let mut stream = vm
        .exec_stream(Command::from_argv(["seq", "1", "600000"]))
        .unwrap();
    let (mut received, mut drops, mut started) = (Vec::new(), 0, 0);
    let exit = loop {
        match stream.next().await.unwrap().unwrap() {
            ExecEvent::Started { .. } => started += 1,
            ExecEvent::Stdout(bytes) => {
                received.extend(bytes);
                if received.len() > drops * 150_000 {
                    drops += 1;
                    vm.reconnect().unwrap();
                }
            }
            ExecEvent::Exited(exit) => break exit,
            other => panic!("{other:?}"),
        }
    };
    assert!(drops >= 20, "only {drops} drops");
    assert_eq!((started, exit.cause), (1, Cause::Code(0)));
    assert!(received == expected.as_bytes());
}

#[tokio::test]
async fn short_commands_run_once_whatever_happens_to_their_connection() {
    let Some(vm) = start().await else { return };
    for number in 0..30 {
        let line = format!("echo {number} >> /workspace/log; echo {number}");
        let running = vm.exec_stream(Command::shell(line)).unwrap();
        // At a different moment of its short life each time.
        for _ in 0..number {
            tokio::task::yield_now().await;
        }
        vm.reconnect().unwrap();
        let output = running.wait_with_output().await.unwrap();
        assert_eq!(output.stdout_text(), format!("{number}\n"));
    }
    let log = vm.exec(["cat", "/workspace/log"]).await.unwrap();
    let expected: String = (0..30).map(|number| format!("{number}\n")).collect();
    assert_eq!(log.stdout_text(), expected);
}

#[tokio::test]
async fn the_end_of_the_device_is_the_end_of_the_vm() {
    let Some(vm) = start().await else { return };
    let (id, folder) = (vm.id().to_owned(), folder_of(&vm));
    let running = vm
        .exec_stream(Command::from_argv(["sleep", "1000"]))
        .unwrap();
    let waiting = tokio::spawn(running.wait_with_output());
    vm.exec(["true"]).await.unwrap();
    let programs = programs_of(&id);
    let device = programs.iter().find(|(_, line)| line.contains("uds-path"));
    let short_timeout = crate::short_timeout(&vm).await;
    let killed_at = Instant::now();
    kill_process(Pid::from_raw(device.unwrap().0).unwrap(), Signal::KILL).unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Gone(End::Died)), "{error:?}");
    assert!(killed_at.elapsed() < short_timeout);
    assert!(matches!(vm.state(), VmState::Ended(end) if end.reason == End::Died));
    assert_eq!(programs_of(&id), []);
    assert!(!folder.exists());
    let error = vm.exec(["true"]).await.unwrap_err();
    assert!(matches!(error, Error::Gone(End::Died)), "{error:?}");
}

#[tokio::test]
async fn a_missing_or_broken_device_program_is_named() {
    let with = |program: &str| {
        let qemu = Qemu::new().vhost_device_vsock(program);
        vsock().backends(Backends::new().with(qemu)).start()
    };
    for (program, expected) in [
        ("/no/such/program", "there is no such program"),
        ("/bin/ls", "unrecognized option"),
        ("/bin/true", "it does not accept connections"),
    ] {
        let error = with(program).await.unwrap_err();
        assert!(matches!(error, Error::BadFile { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(program) && text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn a_link_that_there_is_not_is_refused_with_what_to_do() {
    let error = builder().link(LinkKind::Relay).start().await.unwrap_err();
    assert_eq!(error.code(), "invalid", "{error:?}");
    if !fs::exists("/dev/vhost-vsock").unwrap() {
        let error = builder().link(LinkKind::Vsock).start().await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("/dev/vhost-vsock") && text.contains("load"),
            "{text}"
        );
    }
}
