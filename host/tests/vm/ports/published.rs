//! Published ports.

use std::net::Ipv4Addr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use vmcell::{Command, Error, Vm, port::PortError};

use super::{connect, dial, noise, read_all, serve_echo, wait_for_reset, within};
use crate::start;

#[tokio::test]
async fn a_web_server_in_the_guest_serves_clients_of_the_host() {
    let vm = start().await;
    let bytes = noise(20_000_000);
    vm.files().write("/srv/data", bytes.clone()).await.unwrap();
    let server = ["httpd", "-f", "-p", "127.0.0.1:8080", "-h", "/srv"];
    vm.spawn(Command::from_argv(server)).await.unwrap();
    drop(dial(&vm, 8080).await);
    let port = vm.ports().publish(8080).await.unwrap();
    assert!(port.address().ip().is_loopback());
    assert_eq!(port.guest_port(), 8080);
    let mut client = connect(&port).await;
    client
        .write_all(b"GET /data HTTP/1.0\r\n\r\n")
        .await
        .unwrap();
    let (answer, outcome) = read_all(client).await;
    outcome.unwrap();
    let body = answer
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .unwrap()
        + 4;
    assert!(answer.starts_with(b"HTTP/1."));
    assert!(answer[body..] == bytes, "{} bytes", answer.len() - body);
}

#[tokio::test]
async fn a_port_can_be_published_before_anybody_listens() {
    let vm = start().await;
    let port = vm.ports().publish(7).await.unwrap();
    wait_for_reset(connect(&port).await).await;
    super::serve(&vm, 7, &["cat"]).await;
    let mut client = connect(&port).await;
    client.write_all(b"hello").await.unwrap();
    client.shutdown().await.unwrap();
    let (answer, outcome) = read_all(client).await;
    outcome.unwrap();
    assert_eq!(answer, b"hello");
}

#[tokio::test]
async fn a_port_of_the_host_is_had_by_one_at_a_time() {
    let vm = start().await;
    let other = start().await;
    let taken = |error: Error, expected: u16| {
        assert_eq!(error.code(), "host-port-taken");
        assert!(
            matches!(error, Error::Port(PortError::HostPortTaken { port }) if port == expected),
            "{error:?}"
        );
    };
    // Taken by this program, for this VM or another.
    let port = vm.ports().publish(7).await.unwrap();
    let number = port.host_port();
    taken(vm.ports().publish((number, 8)).await.unwrap_err(), number);
    taken(
        other.ports().publish((number, 7)).await.unwrap_err(),
        number,
    );
    // Taken by another socket.
    let somebody = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
    let theirs = somebody.local_addr().unwrap().port();
    taken(vm.ports().publish((theirs, 7)).await.unwrap_err(), theirs);
    // It is free as soon as it is closed, although it had connections.
    let client = connect(&port).await;
    port.close().await;
    let again = other.ports().publish((number, 7)).await.unwrap();
    assert_eq!(again.host_port(), number);
    drop(client);
    for mapping in [(0, 7), (7, 0)] {
        let error = vm.ports().publish(mapping).await.unwrap_err();
        assert_eq!(error.code(), "bad-port-mapping");
    }
}

#[tokio::test]
async fn a_list_shows_what_is_published() {
    let vm = start().await;
    let first = vm.ports().publish(7).await.unwrap();
    let second = vm.ports().publish(8).await.unwrap();
    // Its handle does not keep it open, and dropping the handle does not close
    // it.
    let host_port = second.host_port();
    drop(second);
    let listed = || {
        let list = vm.ports().list();
        let pairs = list
            .iter()
            .map(|port| (port.host_port(), port.guest_port()));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(listed(), [(first.host_port(), 7), (host_port, 8)]);
    first.close().await;
    first.close().await;
    assert_eq!(listed(), [(host_port, 8)]);
    assert!(TcpStream::connect(first.address()).await.is_err());
    let left = vm.ports().list();
    vm.kill().await.unwrap();
    for port in left {
        within(port.closed()).await;
    }
    assert_eq!(listed(), []);
    let error = vm.ports().publish(9).await.unwrap_err();
    assert!(matches!(error, Error::Gone(_)), "{error:?}");
}

#[tokio::test]
async fn a_client_that_never_reads_holds_nobody_up() {
    let (vm, port) = serve_echo().await;
    super::serve(&vm, 19, &["yes"]).await;
    let flood = vm.ports().publish(19).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..3 {
        let client = connect(&flood).await;
        within(client.readable()).await.unwrap();
        clients.push(client);
    }
    for number in 0..30 {
        let mut client = connect(&port).await;
        let word = format!("number {number}");
        client.write_all(word.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_all(client).await.0, word.as_bytes());
    }
    assert!(vm.exec(["true"]).await.unwrap().success());
    // What they have not read yet is not lost.
    let mut some = vec![0; 4_000_000];
    within(clients[0].read_exact(&mut some)).await.unwrap();
    assert!(some.chunks(2).all(|line| line == b"y\n"));
}

#[tokio::test]
async fn two_hundred_connections_talk_at_once() {
    const COUNT: u32 = 200;
    let (_vm, port) = serve_echo().await;
    let mut clients = Vec::new();
    for _ in 0..COUNT {
        let mut client = connect(&port).await;
        client.write_all(b"x").await.unwrap();
        within(client.read_exact(&mut [0])).await.unwrap();
        clients.push(client);
    }
    let mut talking = tokio::task::JoinSet::new();
    for (number, mut client) in (0..COUNT).zip(clients) {
        talking.spawn(async move {
            let bytes = noise(10_000 + number);
            client.write_all(&bytes).await.unwrap();
            client.shutdown().await.unwrap();
            let (received, outcome) = read_all(client).await;
            outcome.unwrap();
            assert!(received == bytes, "{} bytes came back", received.len());
        });
    }
    within(async {
        while let Some(talked) = talking.join_next().await {
            talked.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn an_attached_program_publishes_for_as_long_as_it_stays() {
    let (vm, owners) = serve_echo().await;
    let attached = Vm::attach(vm.id()).await.unwrap();
    let port = attached.ports().publish(7).await.unwrap();
    assert_eq!(vm.ports().list().len(), 1);
    let number = owners.host_port();
    let error = attached.ports().publish((number, 7)).await.unwrap_err();
    assert_eq!(error.code(), "host-port-taken");
    for port in [&port, &owners] {
        let mut client = connect(port).await;
        client.write_all(b"hello").await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_all(client).await.0, b"hello");
    }
    let client = connect(&port).await;
    drop(attached);
    within(port.closed()).await;
    wait_for_reset(client).await;
    assert!(TcpStream::connect(owners.address()).await.is_ok());
}
