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

/// Nothing here takes this long unless it is broken.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

async fn patiently<T>(future: impl Future<Output = T>) -> T {
    timeout(TEST_TIMEOUT, future).await.unwrap()
}

/// A server that hands each connection to a program.
async fn serve(vm: &Vm, port: u16, program: &[&str]) {
    let port_text = port.to_string();
    let server = ["nc", "-ll", "-p", &port_text, "-e"];
    let argv = server.iter().chain(program).copied();
    let command = Command::from_argv(argv).tag(format!("server-{port}"));
    vm.spawn(command).await.unwrap();
    drop(dial(vm, port).await);
}

/// Dials a port as soon as somebody listens there.
async fn dial(vm: &Vm, port: u16) -> Connection {
    patiently(async {
        loop {
            match vm.ports().dial(port).await {
                Err(Error::Port(PortError::NobodyListens { .. })) => {}
                dialled => return dialled.unwrap(),
            }
        }
    })
    .await
}

/// A VM with a server that echoes, and its port published.
async fn echoing() -> (Vm, PublishedPort) {
    let vm = start().await;
    serve(&vm, 7, &["cat"]).await;
    let port = vm.ports().publish(7).await.unwrap();
    (vm, port)
}

async fn connect(port: &PublishedPort) -> TcpStream {
    patiently(TcpStream::connect(port.address())).await.unwrap()
}

/// Reads to the end, or to what breaks it.
async fn read_all(mut from: impl AsyncRead + Unpin) -> (Vec<u8>, io::Result<usize>) {
    let mut bytes = Vec::new();
    let outcome = patiently(from.read_to_end(&mut bytes)).await;
    (bytes, outcome)
}

/// Waits until a connection is broken.
async fn until_broken(mut from: impl AsyncRead + Unpin) {
    let (_, outcome) = read_all(&mut from).await;
    assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

/// Bytes without a pattern.
fn noise(size: u32) -> Vec<u8> {
    (0..size)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}
