//! The features of a VM, without a VM.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vmcell::{
    Cause, Command, Error, LinkKind, Vm,
    port::PortError,
    service::{Probe, ServiceSpec},
};

use crate::{builder, shell, start};

#[tokio::test]
async fn commands_run_as_pid_1s_children_with_a_host_name_of_their_own() {
    let Some(builder) = builder() else { return };
    let vm = builder.hostname("inside").start().await.unwrap();
    assert_eq!(shell(&vm, "id -u; hostname; pwd").await, "0\ninside\n/\n");
    let parent = shell(&vm, "grep PPid /proc/self/status").await;
    assert!(parent.starts_with("PPid:\t"), "{parent}");
    let output = vm
        .exec_with(["tee", "/dev/stderr"], |command| command.stdin("hello"))
        .await
        .unwrap();
    assert_eq!(
        (&output.stdout[..], &output.stderr[..]),
        (&b"hello"[..], &b"hello"[..])
    );
    let output = vm.exec(["sh", "-c", "exit 7"]).await.unwrap();
    assert_eq!(output.code(), Some(7));
    let error = vm.exec(["/no/such/program"]).await.unwrap_err();
    assert_eq!(error.code(), "exec", "{error:?}");
    vm.stop().await.unwrap();
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_its_descendants() {
    let Some(vm) = start().await else { return };
    let command = Command::shell("sleep 1000 & sleep 1000").timeout(Duration::from_millis(200));
    let error = vm.exec_command(command).await.unwrap_err();
    assert_eq!(error.cause(), Some(Cause::Timeout), "{error:?}");
    let left = shell(&vm, "pidof sleep || true").await;
    assert_eq!(left, "");
}

#[tokio::test]
async fn files_are_written_read_moved_and_removed() {
    let Some(vm) = start().await else { return };
    let files = vm.files().at("/workspace");
    files.write("a/b.txt", "hello").await.unwrap();
    assert_eq!(files.read("a/b.txt").await.unwrap(), b"hello");
    assert_eq!(shell(&vm, "cat /workspace/a/b.txt").await, "hello");
    // A directory of the image can also be removed and created again.
    shell(&vm, "rm -r /var/* && mkdir -p /var/tmp && touch /var/tmp/x").await;
    let large = vec![7; 5_000_000];
    files.write("large", large.clone()).await.unwrap();
    assert!(files.read("large").await.unwrap() == large);
    // Written data is limited by the memory size.
    let full = vm
        .exec(["dd", "if=/dev/zero", "of=/workspace/full", "bs=1M"])
        .await
        .unwrap();
    assert!(full.stderr_text().contains("No space left"), "{full:?}");
}

#[cfg(feature = "terminal")]
#[tokio::test]
async fn a_shell_has_a_terminal() {
    use vmcell::terminal::TerminalOptions;

    let Some(vm) = start().await else { return };
    let options = TerminalOptions::new().timeout(Duration::from_secs(20));
    let terminal = vm.terminals().open(options).await.unwrap();
    terminal.expect_prompt().await.unwrap();
    let reply = terminal.run("tty; stty size").await.unwrap();
    assert!(reply.text.contains("/dev/pts/0"), "{reply:?}");
    terminal.terminate().await.unwrap();
}

#[tokio::test]
async fn a_service_becomes_ready_and_its_port_is_dialled() {
    let Some(vm) = start().await else { return };
    let spec = ServiceSpec::new(Command::from_argv(["nc", "-ll", "-p", "7", "-e", "cat"]));
    let service = vm
        .services()
        .start("echo", spec.ready(Probe::tcp(7)))
        .await
        .unwrap();
    service.ready().await.unwrap();
    let mut echo = vm.ports().dial(7).await.unwrap();
    echo.write_all(b"hello").await.unwrap();
    let mut heard = [0; 5];
    echo.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"hello");
    service.stop().await.unwrap();
    let error = vm.ports().dial(7).await.unwrap_err();
    assert!(
        matches!(error, Error::Port(PortError::NobodyListens { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_link_that_is_dropped_is_made_anew() {
    let Some(vm) = start().await else { return };
    let bytes = vec![b'x'; 3_000_000];
    let copying = vm.exec_with(["cat"], |command| command.stdin(bytes.clone()));
    let breaking = async {
        for _ in 0..20 {
            vm.reconnect().unwrap();
            assert!(vm.exec(["true"]).await.unwrap().success());
        }
    };
    let (output, ()) = tokio::join!(copying, breaking);
    assert!(output.unwrap().stdout == bytes);
    assert_eq!(vm.health().await.link.kind, LinkKind::Socket);
}

#[tokio::test]
async fn two_at_once_share_nothing() {
    let (Some(first), Some(second)) = tokio::join!(start(), start()) else {
        return;
    };
    shell(&first, "echo secret > /workspace/file; sleep 1000 &").await;
    assert_eq!(shell(&second, "ls /workspace").await, "");
    assert_eq!(shell(&second, "pidof sleep || true").await, "");
    first.stop().await.unwrap();
    assert_eq!(shell(&second, "echo alive").await, "alive\n");
}

#[tokio::test]
async fn everybody_hears_the_warning() {
    let Some(vm) = start().await else { return };
    let is_warned = |warnings: &[String]| {
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("no security boundary"));
    };
    is_warned(vm.warnings());
    is_warned(&vm.health().await.warnings);
    assert_eq!(vm.health().await.acceleration, None);
    is_warned(&vm.exec(["true"]).await.unwrap().warnings);
    let client = Vm::attach(vm.id()).await.unwrap();
    assert_eq!(client.health().await.acceleration, None);
    is_warned(client.warnings());
    is_warned(&client.exec(["true"]).await.unwrap().warnings);
}
