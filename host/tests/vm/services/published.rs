//! Ports that are published for a service.

use std::sync::atomic::{AtomicU16, Ordering};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use vmcell::{
    Error, Vm,
    port::PortError,
    service::{Probe, ServiceSpec},
};

use super::{IDLE, ready, run, shell, start_service, within};
use crate::start;

fn web() -> ServiceSpec {
    shell("exec httpd -f -p 8080 -h /www").ready(Probe::tcp(8080))
}

async fn vm() -> Vm {
    let vm = start().await;
    run(&vm, "mkdir /www; echo hello > /www/page").await;
    vm
}

async fn get(port: u16) -> String {
    let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = "GET /page HTTP/1.0\r\n\r\n";
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(client.read_to_string(&mut answer)).await.unwrap();
    answer
}

/// Returns a port that nobody uses, and that stays free: the kernel assigns
/// ephemeral ports from 32768 on.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // A concurrent run of the tests starts at another port.
    let first = 10_000 + (std::process::id() % 200) as u16 * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

#[tokio::test]
async fn what_a_service_publishes_is_there_until_it_is_over() {
    let vm = vm().await;
    let port = free_port();
    let spec = web().publish((port, 8080)).publish(8080);
    let service = start_service(&vm, "web", spec.clone()).await;
    ready(&service).await;
    let ports = service.ports();
    assert_eq!(ports.len(), 2);
    assert!(ports.iter().all(|port| port.service() == Some("web")));
    for port in &ports {
        assert!(get(port.host_port()).await.ends_with("hello\n"));
    }
    // Starting the same service again publishes nothing twice.
    let same = within(vm.services().ensure_started("web", spec.clone()))
        .await
        .unwrap();
    assert_eq!(same.ports().len(), 2);
    // A restart does not close the ports.
    within(service.restart()).await.unwrap();
    ready(&service).await;
    assert!(get(port).await.ends_with("hello\n"));

    within(service.stop()).await.unwrap();
    assert!(service.ports().is_empty());
    wait_free(port).await;
    // It can be started again at once.
    let service = start_service(&vm, "web", spec).await;
    ready(&service).await;
    assert!(get(port).await.ends_with("hello\n"));
    // The ports close however the service ends.
    let published = service.ports();
    run(&vm, "killall -9 httpd").await;
    for port in &published {
        within(port.closed()).await;
    }
    assert!(vm.ports().list().is_empty());
}

/// Waits until a port can be bound. A program that another test starts holds all
/// sockets of this process between its fork and its exec.
async fn wait_free(port: u16) {
    within(async {
        while TcpListener::bind(("127.0.0.1", port)).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_port_that_is_taken_starts_nothing() {
    let vm = vm().await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let free = free_port();
    let spec = web().publish((free, 8080)).publish((port, 8080));
    let error = within(vm.services().start("web", spec)).await.unwrap_err();
    assert!(
        matches!(error, Error::Port(PortError::HostPortTaken { .. })),
        "{error:?}"
    );
    assert!(vm.services().list().await.unwrap().is_empty());
    assert!(vm.ports().list().is_empty());
    wait_free(free).await;

    // Nothing is published for a service that cannot be started.
    start_service(&vm, "web", shell(IDLE)).await;
    let spec = web().publish((free, 8080));
    within(vm.services().start("web", spec)).await.unwrap_err();
    assert!(vm.ports().list().is_empty());
    wait_free(free).await;
}
