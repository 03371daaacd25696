//! Ports of a guest, dialled and published.

mod dialled;
mod endings;
mod published;

use std::{future::Future, io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    net::TcpStream,
    time::timeout,
};
use vmcell::{
    Command, Error, Vm,
    port::{Connection, PortError, PublishedPort},
};

use crate::start;

/// Longer than anything here takes unless it is broken.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(TEST_TIMEOUT, future).await.unwrap()
}

/// Starts a server that runs a program for each connection.
async fn serve(vm: &Vm, port: u16, program: &[&str]) {
    let port_text = port.to_string();
    let server = ["nc", "-ll", "-p", &port_text, "-e"];
    let argv = server.iter().chain(program).copied();
    let command = Command::from_argv(argv).tag(format!("server-{port}"));
    vm.spawn(command).await.unwrap();
    drop(dial(vm, port).await);
}

/// Dials a port as soon as a program listens there.
async fn dial(vm: &Vm, port: u16) -> Connection {
    within(async {
        loop {
            match vm.ports().dial(port).await {
                Err(Error::Port(PortError::NobodyListens { .. })) => {}
                dialled => return dialled.unwrap(),
            }
        }
    })
    .await
}

/// Starts a VM with an echo server, and publishes its port.
async fn serve_echo() -> (Vm, PublishedPort) {
    let vm = start().await;
    serve(&vm, 7, &["cat"]).await;
    let port = vm.ports().publish(7).await.unwrap();
    (vm, port)
}

async fn connect(port: &PublishedPort) -> TcpStream {
    within(TcpStream::connect(port.address())).await.unwrap()
}

/// Reads to the end of file, or to an error.
async fn read_all(mut from: impl AsyncRead + Unpin) -> (Vec<u8>, io::Result<usize>) {
    let mut bytes = Vec::new();
    let outcome = within(from.read_to_end(&mut bytes)).await;
    (bytes, outcome)
}

/// Waits until a connection is reset.
async fn wait_for_reset(mut from: impl AsyncRead + Unpin) {
    let (_, outcome) = read_all(&mut from).await;
    assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

/// Returns bytes without a pattern.
fn noise(size: u32) -> Vec<u8> {
    (0..size)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}
