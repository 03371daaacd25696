//! What clients see when the VM, the link or the server is gone.

use std::time::Instant;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use vmcell::port::PublishedPort;

use super::{connect, read_all, serve_echo, wait_for_reset, within};

/// Connects clients that have received one reply each.
async fn busy_clients(port: &PublishedPort) -> Vec<TcpStream> {
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = connect(port).await;
        client.write_all(b"x").await.unwrap();
        within(client.read_exact(&mut [0])).await.unwrap();
        clients.push(client);
    }
    clients
}

#[tokio::test]
async fn a_vm_that_is_killed_takes_its_connections_with_it() {
    let (vm, port) = serve_echo().await;
    let clients = busy_clients(&port).await;
    let dialled = super::dial(&vm, 7).await;
    let short_timeout = crate::short_timeout(&vm).await;
    vm.kill().await.unwrap();
    let killed = Instant::now();
    for client in clients {
        wait_for_reset(client).await;
    }
    wait_for_reset(dialled).await;
    within(port.closed()).await;
    assert!(killed.elapsed() < short_timeout);
    assert!(TcpStream::connect(port.address()).await.is_err());
}

#[tokio::test]
async fn a_vm_that_is_stopped_closes_its_ports() {
    let (vm, port) = serve_echo().await;
    let clients = busy_clients(&port).await;
    vm.stop().await.unwrap();
    for client in clients {
        // The program may have had time to close it cleanly.
        let _ = read_all(client).await;
    }
    within(port.closed()).await;
    assert!(TcpStream::connect(port.address()).await.is_err());
}

#[tokio::test]
async fn a_vm_that_is_dropped_closes_its_ports() {
    let (vm, port) = serve_echo().await;
    let clients = busy_clients(&port).await;
    drop(vm);
    for client in clients {
        wait_for_reset(client).await;
    }
    within(port.closed()).await;
}

#[tokio::test]
async fn a_published_port_survives_its_link_and_its_connections_do_not() {
    let (vm, port) = serve_echo().await;
    for _ in 0..3 {
        let clients = busy_clients(&port).await;
        vm.reconnect().unwrap();
        for client in clients {
            wait_for_reset(client).await;
        }
    }
    let mut client = connect(&port).await;
    client.write_all(b"still here").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(client).await.0, b"still here");
}

#[tokio::test]
async fn a_server_that_is_killed_takes_its_connections_with_it() {
    let (vm, port) = serve_echo().await;
    let clients = busy_clients(&port).await;
    // Waits until all of it is gone: a server that is about to die may still
    // accept a connection, and close it cleanly.
    let exit = vm.processes().kill("server-7").await.unwrap();
    assert_eq!(exit.tree_ended, Some(true));
    for client in clients {
        // The guest's kernel closes them cleanly: nothing was unread.
        read_all(client).await.1.unwrap();
    }
    wait_for_reset(connect(&port).await).await;
}
