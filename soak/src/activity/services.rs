//! Services.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use vmcell::{
    Command, Vm, VmState,
    service::{Probe, Restart, ServiceSpec},
};

use super::{VmEnded, guest_port};
use crate::random::Random;

const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a web server as a service, kills it, and expects it to be there again.
pub(super) async fn supervise(vm: &Vm, random: &mut Random) -> Result<()> {
    let (name, port) = (format!("web-{}", random.name()), guest_port(random));
    let folder = format!("/tmp/{name}");
    let count = random.size_below(200_000) + 1;
    let page = random.bytes(count);
    vm.files()
        .write(format!("{folder}/page"), page.clone())
        .await?;
    let line = format!("exec httpd -f -p {port} -h {folder}");
    let spec = ServiceSpec::new(Command::shell(line))
        .ready(Probe::tcp(port))
        .restart(Restart::always());
    let service = vm.services().start(&name, spec).await?;
    service.ready().await?;
    let published = vm.ports().publish(port).await?;
    for _ in 0..random.below(3) + 1 {
        let received = get(TcpStream::connect(published.address()).await?).await?;
        ensure!(
            received.ends_with(&page),
            "a page of {count} bytes is another one"
        );
    }
    if random.one_in(2) {
        let pid = service.status().await?.pid.context("it has no process")?;
        vm.exec(["kill", "-9", &pid.to_string()]).await?;
        // Until it is there again, connections end early.
        let is_back = async || {
            let connection = TcpStream::connect(published.address()).await?;
            anyhow::Ok(get(connection).await?.ends_with(&page))
        };
        while !is_back().await.unwrap_or(false) {
            let is_there = matches!(vm.state(), VmState::Running | VmState::Paused);
            ensure!(is_there, VmEnded);
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
    published.close().await;
    service.stop().await?;
    vm.files().remove_tree(&folder).await?;
    Ok(())
}

async fn get(mut connection: TcpStream) -> Result<Vec<u8>> {
    connection.write_all(b"GET /page HTTP/1.0\r\n\r\n").await?;
    let mut received = Vec::new();
    connection.read_to_end(&mut received).await?;
    Ok(received)
}
