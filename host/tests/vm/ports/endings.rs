//! What clients see when what they talk to is gone.

use std::time::Instant;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use vmcell::port::PublishedPort;

use super::{connect, echoing, patiently, read_all, until_broken};

/// Clients that have been answered once.
async fn busy_clients(port: &PublishedPort) -> Vec<TcpStream> {
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = connect(port).await;
        client.write_all(b"x").await.unwrap();
        patiently(client.read_exact(&mut [0])).await.unwrap();
        clients.push(client);
    }
    clients
}

#[tokio::test]
async fn a_vm_that_is_killed_takes_its_connections_with_it() {
    let (vm, port) = echoing().await;
    let clients = busy_clients(&port).await;
    let dialled = super::dial(&vm, 7).await;
    let soon = crate::soon(&vm).await;
    vm.kill().await;
    let killed = Instant::now();
    for client in clients {
        until_broken(client).await;
    }
    until_broken(dialled).await;
    patiently(port.closed()).await;
    assert!(killed.elapsed() < soon);
    assert!(TcpStream::connect(port.address()).await.is_err());
}

#[tokio::test]
async fn a_vm_that_is_stopped_closes_its_ports() {
    let (vm, port) = echoing().await;
    let clients = busy_clients(&port).await;
    vm.stop().await.unwrap();
    for client in clients {
        // The program may have had the time to end it in order.
        let _ = read_all(client).await;
    }
    patiently(port.closed()).await;
    assert!(TcpStream::connect(port.address()).await.is_err());
}

#[tokio::test]
async fn a_vm_that_is_dropped_closes_its_ports() {
    let (vm, port) = echoing().await;
    let clients = busy_clients(&port).await;
    drop(vm);
    for client in clients {
        until_broken(client).await;
    }
    patiently(port.closed()).await;
}

#[tokio::test]
async fn a_published_port_survives_its_link_and_its_connections_do_not() {
    let (vm, port) = echoing().await;
    for _ in 0..3 {
        let clients = busy_clients(&port).await;
        vm.reconnect();
        for client in clients {
            until_broken(client).await;
        }
    }
    let mut client = connect(&port).await;
    client.write_all(b"still here").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(client).await.0, b"still here");
}

#[tokio::test]
async fn a_server_that_is_killed_takes_its_connections_with_it() {
    let (vm, port) = echoing().await;
    let clients = busy_clients(&port).await;
    // All of it is gone by then: one that is about to die may still take a
    // connection, and ends it in order.
    let exit = vm.processes().kill("server-7").await.unwrap();
    assert_eq!(exit.tree_ended, Some(true));
    for client in clients {
        // The kernel of the guest ends them in order: nothing was unread.
        read_all(client).await.1.unwrap();
    }
    until_broken(connect(&port).await).await;
}
