//! Connections with much data, many at once, and that break.

use std::{net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use vmcell::{Command, Vm, network::NetworkLimits, network::NetworkPolicy};

use super::{WebServer, debian_with, fetch, policy_for, python, shell, vm_with};

const TEST_TIMEOUT: Duration = Duration::from_secs(120);

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

async fn accept(listener: &TcpListener) -> TcpStream {
    let accepted = timeout(TEST_TIMEOUT, listener.accept()).await;
    accepted.unwrap().unwrap().0
}

#[tokio::test]
async fn all_bytes_arrive_in_both_directions() {
    const SIZE: usize = 8 << 20;
    let (listener, port) = listener().await;
    let vm = vm_with(policy_for(port)).start().await.unwrap();
    let script =
        format!("head -c {SIZE} /dev/zero | tr '\\0' x | nc web.test {port} | tr -d y | wc -c");
    let talking = async {
        let mut client = accept(&listener).await;
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received.len(), SIZE);
        assert!(received.iter().all(|byte| *byte == b'x'));
        client.write_all(&vec![b'z'; SIZE]).await.unwrap();
    };
    let (output, ()) = tokio::join!(shell(&vm, &script), talking);
    assert_eq!(output.stdout_text().trim(), SIZE.to_string(), "{output:?}");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_connection_that_the_server_resets_is_reset_in_the_guest() {
    let (listener, port) = listener().await;
    let vm = vm_with(policy_for(port)).start().await.unwrap();
    let talking = async {
        let mut client = accept(&listener).await;
        client.write_all(b"begin").await.unwrap();
        client.read_u8().await.unwrap();
        client.set_zero_linger().unwrap();
    };
    let line = format!(
        "mkfifo /tmp/f; (echo x; exec sleep 1000) >/tmp/f & nc web.test {port} </tmp/f; \
         echo; echo ended; kill $!"
    );
    let (output, ()) = tokio::join!(shell(&vm, &line), talking);
    assert_eq!(output.stdout_text(), "begin\nended\n", "{output:?}");
    // A server that is not there at all.
    drop(listener);
    let page = fetch(&vm, "web.test", port).await;
    assert!(!page.is_there, "{page:?}");
    assert!(page.denials.is_empty(), "{page:?}");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn who_does_not_read_does_not_hold_up_others() {
    let (listener, port) = listener().await;
    let server = WebServer::start().await;
    let policy = policy_for(port).allow(&format!("web.test:{}", server.port()));
    let vm = vm_with(policy.unwrap()).start().await.unwrap();
    let endless = Command::shell(format!("nc web.test {port} </dev/zero >/dev/null"));
    vm.spawn(endless).await.unwrap();
    // It never reads, and the next one sends endlessly to a program that never reads.
    let _silent = accept(&listener).await;
    let sleeper = Command::shell(format!("sleep 1000 | nc web.test {port} | sleep 1000"));
    vm.spawn(sleeper).await.unwrap();
    let mut flood = accept(&listener).await;
    let flooding = tokio::spawn(async move { while flood.write_all(&[0; 65536]).await.is_ok() {} });
    for _ in 0..3 {
        let page = fetch(&vm, "web.test", server.port()).await;
        assert!(page.is_there, "{page:?}");
    }
    flooding.abort();
    vm.kill().await.unwrap();
}

/// Starts a program in the guest that makes so many connections at once, and holds them.
async fn hold_connections(vm: &Vm, count: usize, port: u16) {
    let script = format!(
        "i=0; while [ $i -lt {count} ]; do (sleep 1000 | nc web.test {port} >/dev/null) & \
         i=$((i+1)); done; wait"
    );
    vm.spawn(Command::shell(script)).await.unwrap();
}

#[tokio::test]
async fn a_hundred_connections_are_open_at_once_and_all_end_with_the_vm() {
    const COUNT: usize = 100;
    let (listener, port) = listener().await;
    let limits = NetworkLimits::new().connections(COUNT);
    let vm = vm_with(policy_for(port).limits(limits));
    let vm = vm.memory_mib(512).start().await.unwrap();
    hold_connections(&vm, COUNT, port).await;
    let mut clients = Vec::new();
    for _ in 0..COUNT {
        clients.push(accept(&listener).await);
    }
    // One more is refused.
    let page = fetch(&vm, "web.test", port).await;
    assert!(!page.is_there, "{page:?}");
    assert_eq!(page.denials, [format!("web.test:{port}")]);
    vm.kill().await.unwrap();
    for mut client in clients {
        let ended = timeout(TEST_TIMEOUT, client.read_u8()).await.unwrap();
        assert!(ended.is_err());
    }
}

#[tokio::test]
async fn a_copy_of_a_vm_keeps_to_its_own_policy() {
    let server = WebServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    let vm = vm_with(policy_for(server.port()));
    let vm = vm.link(vmcell::LinkKind::Serial).start().await.unwrap();
    assert!(fetch(&vm, "web.test", server.port()).await.is_there);
    vm.snapshot(&path).await.unwrap();
    assert!(fetch(&vm, "web.test", server.port()).await.is_there);
    let without = Vm::restore(&path).await.unwrap();
    assert!(!fetch(&without, "web.test", server.port()).await.is_there);
    without.kill().await.unwrap();
    let other = NetworkPolicy::rules().allow("other.test").unwrap();
    let other = Vm::builder().snapshot(&path).network(other);
    let other = other.start().await.unwrap();
    let page = fetch(&other, "web.test", server.port()).await;
    assert_eq!(page.denials, ["web.test"], "{page:?}");
    let policy = policy_for(server.port());
    let same = Vm::builder().snapshot(&path).network(policy);
    let same = same.start().await.unwrap();
    assert!(fetch(&same, "web.test", server.port()).await.is_there);
    assert_eq!(server.clients(), 3);
}

#[tokio::test]
async fn five_hundred_connections_at_once_are_served_and_leave_nothing() {
    let (listener, port) = listener().await;
    let limits = NetworkLimits::new().connections(NetworkLimits::MAX_CONNECTIONS);
    let vm = debian_with(policy_for(port).limits(limits));
    let vm = vm.start().await.unwrap();
    let echo = tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = client.split();
                tokio::io::copy(&mut reader, &mut writer).await
            });
        }
    });
    let program = format!(
        "import socket\n\
         all = [socket.create_connection(('web.test', {port}), 100) for _ in range(500)]\n\
         for number, one in enumerate(all): one.sendall(b'%04d' % number)\n\
         for number, one in enumerate(all): assert one.recv(4) == b'%04d' % number\n\
         try:\n\
         \x20   assert not socket.create_connection(('web.test', {port}), 100).recv(1)\n\
         except ConnectionResetError:\n\
         \x20   print('one more is reset')\n\
         for one in all: one.close()"
    );
    let output = python(&vm, &program, &[]).await;
    assert_eq!(output.stdout_text(), "one more is reset\n", "{output:?}");
    // As soon as the guest has closed them, so has the host.
    let mut log = vm.network_log().await.unwrap();
    while !vm.network_status().await.unwrap().connections.is_empty() {
        timeout(TEST_TIMEOUT, log.next()).await.unwrap();
    }
    assert!(vm.health().await.is_healthy());
    echo.abort();
    vm.kill().await.unwrap();
}
