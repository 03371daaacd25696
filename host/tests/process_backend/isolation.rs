//! Isolation from the host. It is not a security boundary, but ordinary
//! programs cannot get out.

use std::process::{Command as HostCommand, Stdio};

use crate::{shell, start};

#[tokio::test]
async fn processes_of_the_host_are_neither_seen_nor_signalled() {
    let Some(vm) = start().await else { return };
    let mut bystander = HostCommand::new("sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = bystander.id();
    let script = format!("kill -0 {pid} 2>&1; test -e /proc/{pid} && echo seen; kill -9 -1; true");
    let tried = vm.exec(["sh", "-c", &script]).await.unwrap();
    let said = tried.stdout_text();
    // A process inside may have the same pid.
    assert!(!said.contains("seen") || pid < 10, "{said}");
    assert!(bystander.try_wait().unwrap().is_none(), "it was signalled");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    let numbers = shell(&vm, "ls -d /proc/[0-9]* | wc -l").await;
    assert!(numbers.trim().parse::<u32>().unwrap() < 10, "{numbers}");
}

#[tokio::test]
async fn files_of_the_host_are_not_there() {
    let Some(vm) = start().await else { return };
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let tried = vm.exec(["cat", path]).await.unwrap();
    assert!(!tried.success());
    for place in ["/proc/1/root", "/proc/self/root"] {
        let tried = vm.exec(["cat", &format!("{place}{path}")]).await.unwrap();
        assert!(!tried.success(), "{place}");
    }
    let mounts = shell(&vm, "cat /proc/self/mounts").await;
    let places = mounts.lines().map(|line| line.split(' ').nth(1).unwrap());
    for place in places {
        let known = ["/dev", "/proc", "/run", "/sys/fs/cgroup"];
        let is_known = known.iter().any(|known| place.starts_with(known));
        assert!(place == "/" || is_known, "{mounts}");
    }
    assert_eq!(
        shell(&vm, "ls /sys /sys/fs 2>/dev/null; true")
            .await
            .matches("kernel")
            .count(),
        0
    );
}

#[tokio::test]
async fn nobody_becomes_more_than_they_are() {
    let Some(vm) = start().await else { return };
    assert_eq!(
        shell(&vm, "grep NoNewPrivs /proc/self/status").await,
        "NoNewPrivs:\t1\n"
    );
    // Root inside is not root of the host.
    for setting in ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"] {
        let tried = vm.exec(["sh", "-c", &format!("echo x > {setting}")]).await;
        assert!(!tried.unwrap().success(), "{setting}");
    }
    let tried = vm.exec(["mknod", "/disk", "b", "254", "0"]).await.unwrap();
    assert!(!tried.success(), "{tried:?}");
    // Nor can it read PID 1, which has the secrets of the boot.
    for file in ["mem", "environ", "fd"] {
        let script = format!("cat /proc/1/{file}/ /proc/1/{file} | wc -c");
        assert_eq!(shell(&vm, &script).await, "0\n", "{file}");
    }
}

#[tokio::test]
async fn nothing_is_inherited() {
    let Some(vm) = start().await else { return };
    let environment = shell(&vm, "env | sort | cut -d= -f1 | tr '\\n' ' '").await;
    assert!(!environment.contains("CARGO"), "{environment}");
    let descriptors = shell(&vm, "ls /proc/self/fd | tr '\\n' ' '").await;
    assert_eq!(descriptors, "0 1 2 3 ", "3 is the directory that is listed");
    // It has no controlling terminal of the host.
    let tried = vm.exec(["sh", "-c", "echo x > /dev/tty"]).await.unwrap();
    assert!(!tried.success(), "{tried:?}");
}

#[tokio::test]
async fn there_is_no_network_but_its_own_loopback() {
    let Some(vm) = start().await else { return };
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let tried = vm
        .exec(["nc", "-w", "2", "127.0.0.1", &port])
        .await
        .unwrap();
    assert!(!tried.success(), "{tried:?}");
    let interfaces = shell(&vm, "cut -d: -f1 -s /proc/net/dev | tr -d ' \\n'").await;
    assert!(interfaces.ends_with("lo"), "{interfaces}");
    assert_eq!(shell(&vm, "ip -o link | wc -l").await, "1\n");
}
