//! Connections that begin in the guest, compared with published ports and with the guest's
//! loopback.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use vmcell::{
    Command, Vm, VmBuilder,
    network::{NetworkLimits, NetworkPolicy},
};
use vmcell_benches::{
    baseline::FLOOD_BYTES,
    in_guest::{add_program, measure_in_guest, publish},
    memory,
    summary::{Bound, fact, head, median_round, row},
};

/// The ports of the guest's servers.
const FLOOD_PORT: u16 = 9001;
const GREET_PORT: u16 = 9004;
const SINK_PORT: u16 = 9005;

const ROUNDS: usize = 5;

/// How many connections are made one after the other.
const IN_A_ROW: u32 = 100;

/// How many bytes the guest's server sends.
const GUEST_FLOOD: usize = 1 << 30;

#[tokio::main]
async fn main() -> Result<()> {
    // Cargo adds words of its own, with hyphens.
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| name.contains(wanted));
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let servers = Servers::start().await?;
    head();
    if wanted("start") {
        start(&Vm::builder().image(&image), &servers).await?;
    }
    let vm = Vm::builder().image(&image).network(servers.policy()?);
    let vm = vm.start().await?;
    add_program(&vm).await?;
    if wanted("loopback") {
        loopback(&vm, &Vm::builder().image(&image)).await?;
    }
    if wanted("connect") {
        connect(&vm, &servers).await?;
    }
    if wanted("bulk") {
        bulk(&vm, &servers).await?;
    }
    if wanted("many") {
        many(&vm, &servers).await?;
    }
    vm.kill().await?;
    Ok(())
}

/// Servers on this machine.
struct Servers {
    greet: SocketAddr,
    flood: SocketAddr,
    sink: SocketAddr,
}

impl Servers {
    async fn start() -> Result<Self> {
        Ok(Self {
            greet: serve(greet).await?,
            flood: serve(flood).await?,
            sink: serve(sink).await?,
        })
    }

    /// Returns a policy that allows them, as `host.test`.
    fn policy(&self) -> Result<NetworkPolicy> {
        let limits = NetworkLimits::new()
            .per_minute(u32::MAX)
            .connections(NetworkLimits::MAX_CONNECTIONS);
        let policy = NetworkPolicy::rules()
            .allow("host.test")?
            .host("host.test", Ipv4Addr::LOCALHOST)?;
        Ok(policy.limits(limits).published_ports(true))
    }
}

/// Serves each client in a task of its own.
async fn serve<F>(serve: fn(TcpStream) -> F) -> Result<SocketAddr>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let _ = client.set_nodelay(true);
            tokio::spawn(serve(client));
        }
    });
    Ok(address)
}

async fn greet(mut client: TcpStream) -> Result<()> {
    client.write_all(b"g").await?;
    Ok(())
}

async fn flood(mut client: TcpStream) -> Result<()> {
    let buffer = vec![7; 256 * 1024];
    for _ in 0..FLOOD_BYTES / buffer.len() {
        client.write_all(&buffer).await?;
    }
    Ok(())
}

async fn sink(mut client: TcpStream) -> Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    while client.read(&mut buffer).await? > 0 {}
    client.write_all(b"e").await?;
    Ok(())
}

/// Starts of VMs with a policy and without one.
async fn start(builder: &VmBuilder, servers: &Servers) -> Result<()> {
    let time = async |builder: VmBuilder| {
        let begun = Instant::now();
        let vm = builder.start().await?;
        let time = begun.elapsed();
        vm.kill().await?;
        anyhow::Ok(time)
    };
    let mut rounds = Vec::new();
    for _ in 0..2 * ROUNDS + 1 {
        let without = time(builder.clone()).await?;
        let with = time(builder.clone().network(servers.policy()?)).await?;
        rounds.push((with, without));
    }
    let (with, without) = median_round(rounds);
    row(
        "start with a policy",
        &format!("{} ms", with.as_millis()),
        &format!("{} ms (without)", without.as_millis()),
        with.as_secs_f64() / without.as_secs_f64(),
        Bound::AtMost(1.05),
    );
    Ok(())
}

/// Returns the address that a server of this machine has in the guest.
async fn address_in_guest(vm: &Vm, server: SocketAddr) -> Result<String> {
    let line = "nslookup host.test | tail -n +3 | grep -o '198[.0-9]*'";
    let output = vm.exec_command(Command::shell(line)).await?;
    let address = output.stdout_text();
    let address = address.lines().next().context("no address")?;
    Ok(format!("{address}:{}", server.port()))
}

/// Connections within the guest, which are not taken.
async fn loopback(vm: &Vm, other: &VmBuilder) -> Result<()> {
    let other = other.clone().start().await?;
    add_program(&other).await?;
    let (mut connect, mut bulk) = (Vec::new(), Vec::new());
    for vm in [vm, &other] {
        for (task, port) in [("tcp_greet", GREET_PORT), ("tcp_flood", FLOOD_PORT)] {
            publish(vm, task, port).await?.close().await;
        }
    }
    let own = format!("127.0.0.1:{GREET_PORT}");
    for _ in 0..ROUNDS {
        let without = measure_in_guest(&other, "tcp_connect", &own).await?;
        connect.push((measure_in_guest(vm, "tcp_connect", &own).await?, without));
        let without = measure_in_guest(&other, "tcp_read_flood", "").await?;
        bulk.push((measure_in_guest(vm, "tcp_read_flood", "").await?, without));
    }
    let (with, without) = median_round(connect);
    row(
        "connect within a guest with a policy",
        &format!("{} us", with.as_micros()),
        &format!("{} us (without)", without.as_micros()),
        without.as_secs_f64() / with.as_secs_f64(),
        Bound::AtLeast(0.95),
    );
    let rate = |time: Duration| GUEST_FLOOD as f64 / 1e6 / time.as_secs_f64();
    let (with, without) = median_round(bulk);
    row(
        "1 GiB within a guest with a policy",
        &format!("{:.0} MB/s", rate(with)),
        &format!("{:.0} MB/s (without)", rate(without)),
        rate(with) / rate(without),
        Bound::AtLeast(0.95),
    );
    other.kill().await?;
    for server in vm.processes().list().await? {
        vm.processes().kill(server.id).await?;
    }
    Ok(())
}

/// Connecting, and the first byte.
async fn connect(vm: &Vm, servers: &Servers) -> Result<()> {
    let published = publish(vm, "tcp_greet", GREET_PORT).await?;
    let server = address_in_guest(vm, servers.greet).await?;
    let own = format!("127.0.0.1:{GREET_PORT}");
    let (mut capture, mut first_byte) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let plain = measure_in_guest(vm, "tcp_connect", &own).await?;
        capture.push((measure_in_guest(vm, "tcp_connect", &server).await?, plain));
        let begun = Instant::now();
        for _ in 0..IN_A_ROW {
            let mut client = TcpStream::connect(published.address()).await?;
            client.read_u8().await?;
        }
        let theirs = begun.elapsed() / IN_A_ROW;
        let ours = measure_in_guest(vm, "tcp_first_byte", &server).await?;
        first_byte.push((ours, theirs));
    }
    for (name, what, rounds, bound) in [
        (
            "connect to another host, as the program sees it",
            "to the guest itself",
            capture,
            Bound::None,
        ),
        (
            "connect and first byte",
            "of a published port",
            first_byte,
            Bound::AtMost(1.5),
        ),
    ] {
        let (ours, theirs) = median_round(rounds);
        row(
            name,
            &format!("{} us", ours.as_micros()),
            &format!("{} us ({what})", theirs.as_micros()),
            ours.as_secs_f64() / theirs.as_secs_f64(),
            bound,
        );
    }
    published.close().await;
    Ok(())
}

/// Much data in both directions.
async fn bulk(vm: &Vm, servers: &Servers) -> Result<()> {
    let flood = publish(vm, "tcp_flood", FLOOD_PORT).await?;
    let sink = publish(vm, "tcp_sink", SINK_PORT).await?;
    let flood_server = address_in_guest(vm, servers.flood).await?;
    let sink_server = address_in_guest(vm, servers.sink).await?;
    let (mut inwards, mut outwards) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let theirs = tokio::spawn(write_flood(sink.address())).await??;
        inwards.push((
            measure_in_guest(vm, "tcp_read", &flood_server).await?,
            theirs,
        ));
        let theirs = tokio::spawn(read_flood(flood.address())).await??;
        let scale = FLOOD_BYTES as f64 / GUEST_FLOOD as f64;
        let ours = measure_in_guest(vm, "tcp_write", &sink_server).await?;
        outwards.push((ours, theirs.mul_f64(scale)));
    }
    let rate = |time: Duration| FLOOD_BYTES as f64 / 1e6 / time.as_secs_f64();
    for (name, rounds) in [
        ("256 MiB into the guest", inwards),
        ("256 MiB out", outwards),
    ] {
        let (ours, theirs) = median_round(rounds);
        row(
            name,
            &format!("{:.0} MB/s", rate(ours)),
            &format!("{:.0} MB/s (a published port)", rate(theirs)),
            rate(ours) / rate(theirs),
            Bound::AtLeast(0.9),
        );
    }
    flood.close().await;
    sink.close().await;
    Ok(())
}

async fn write_flood(address: SocketAddr) -> Result<Duration> {
    let mut client = TcpStream::connect(address).await?;
    let buffer = vec![7; 256 * 1024];
    let begun = Instant::now();
    for _ in 0..FLOOD_BYTES / buffer.len() {
        client.write_all(&buffer).await?;
    }
    client.shutdown().await?;
    client.read_u8().await?;
    Ok(begun.elapsed())
}

async fn read_flood(address: SocketAddr) -> Result<Duration> {
    let mut client = TcpStream::connect(address).await?;
    let mut buffer = vec![0; 256 * 1024];
    let begun = Instant::now();
    client.write_all(b"g").await?;
    while client.read(&mut buffer).await? > 0 {}
    Ok(begun.elapsed())
}

/// 10,000 connections one after the other, and what is left of them.
async fn many(vm: &Vm, servers: &Servers) -> Result<()> {
    const REPEATS: u32 = 100;
    let server = address_in_guest(vm, servers.greet).await?;
    // The first ones fill caches.
    measure_in_guest(vm, "tcp_first_byte", &server).await?;
    let (host, agent) = (memory::resident()?, agent_memory(vm).await?);
    let descriptors = memory::descriptors()?;
    for _ in 0..REPEATS {
        measure_in_guest(vm, "tcp_first_byte", &server).await?;
    }
    let host = memory::resident()?.saturating_sub(host) >> 10;
    let agent = agent_memory(vm).await?.saturating_sub(agent);
    let open = vm.network_status().await?.connections.len();
    let left = memory::descriptors()?.saturating_sub(descriptors);
    fact(
        &format!("memory after {} connections", REPEATS * IN_A_ROW),
        &format!("host +{host} KiB, agent +{agent} KiB, {open} open, +{left} descriptors"),
        "flat: at most 2 MiB and 64 KiB, nothing left",
        host <= 2048 && agent <= 64 && open == 0 && left == 0,
    );
    Ok(())
}

/// Returns the resident memory of the agent in KiB.
async fn agent_memory(vm: &Vm) -> Result<u64> {
    let output = vm.exec(["grep", "VmRSS", "/proc/1/status"]).await?;
    let text = output.stdout_text();
    let size = text.split_whitespace().nth(1).context("no size")?;
    Ok(size.parse()?)
}
