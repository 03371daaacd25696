//! Published ports, compared with the raw link and with the guest's loopback.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use vmcell::{Vm, port::PublishedPort};
use vmcell_benches::{
    baseline::{Baseline, FLOOD_BYTES, HTTP_REQUEST, Machine},
    in_guest::{add_program, measure_in_guest, publish},
    memory,
    summary::{Bound, fact, head, median, median_round, row},
};

/// The ports of the guest's program.
const FLOOD_PORT: u16 = 9001;
const HTTP_PORT: u16 = 9002;
const ECHO_PORT: u16 = 9003;

const GIB: usize = 1 << 30;
const CONNECTIONS: u32 = 200;
const ANSWERS: usize = 10_000;
const ROUNDS: usize = 5;
const ROUND_TRIPS: usize = 500;

#[tokio::main]
async fn main() -> Result<()> {
    // Cargo adds words of its own, with hyphens.
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| name.contains(wanted));
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    let vm = Vm::builder().image(&image).start().await?;
    let machine = Machine::of(&vm, &image)?;
    add_program(&vm).await?;
    head();
    if wanted("large") {
        large(&vm, &machine).await?;
    }
    if wanted("http") {
        http(&vm, &machine).await?;
    }
    if wanted("round_trip") {
        round_trip(&vm, &machine).await?;
    }
    vm.kill().await?;
    Ok(())
}

/// 1 GiB out of the guest.
async fn large(vm: &Vm, machine: &Machine) -> Result<()> {
    let port = publish(vm, "tcp_flood", FLOOD_PORT).await?;
    let before = memory::resident()?;
    let mut peak = before;
    let (mut against_link, mut against_loopback) = (Vec::new(), Vec::new());
    let (mut against_relay, mut limits) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (raw, relay) = tokio::task::block_in_place(|| {
            anyhow::Ok((
                Baseline::flood_time(machine)?,
                Baseline::connection_time(machine)?,
            ))
        })?;
        let scale = GIB as f64 / FLOOD_BYTES as f64;
        let (raw, relay) = (raw.mul_f64(scale), relay.mul_f64(scale));
        limits.push((relay, raw));
        // In a task, as in real programs.
        let (time, largest) = tokio::spawn(read_flood(port.clone())).await??;
        peak = peak.max(largest);
        against_link.push((time, raw));
        against_relay.push((time, relay));
        against_loopback.push((time, measure_in_guest(vm, "tcp_read_flood", "").await?));
    }
    let rate = |time: Duration| GIB as f64 / 1e6 / time.as_secs_f64();
    let (ours, relay) = (
        "1 GiB through a published port",
        "a program that only passes on what it reads from a connection",
    );
    for (rounds, who, what, bound) in [
        (against_link, ours, "the raw link", Bound::AtLeast(0.7)),
        (against_loopback, ours, "within the guest", Bound::None),
        (against_relay, ours, relay, Bound::None),
        (limits, relay, "the raw link", Bound::None),
    ] {
        let (ours, theirs) = median_round(rounds);
        row(
            who,
            &format!("{:.0} MB/s", rate(ours)),
            &format!("{:.0} MB/s ({what})", rate(theirs)),
            rate(ours) / rate(theirs),
            bound,
        );
    }
    let grown = (peak - before) >> 20;
    fact(
        "memory meanwhile",
        &format!("host +{grown} MiB"),
        "flat: at most 8 MiB",
        grown <= 8,
    );
    port.close().await;
    Ok(())
}

/// Reads a flood. Returns its time, and the peak resident memory of this process.
async fn read_flood(port: PublishedPort) -> Result<(Duration, usize)> {
    let mut client = TcpStream::connect(port.address()).await?;
    let mut buffer = vec![0; 256 * 1024];
    let begun = Instant::now();
    client.write_all(b"g").await?;
    let (mut count, mut reads, mut largest) = (0, 0, 0);
    loop {
        match client.read(&mut buffer).await? {
            0 => break,
            read => count += read,
        }
        reads += 1;
        if reads % 1000 == 0 {
            largest = largest.max(memory::resident()?);
        }
    }
    ensure!(count == GIB, "received {count} bytes");
    Ok((begun.elapsed(), largest))
}

/// Serves a page of 16 KiB to 200 clients, each of which keeps its connection.
async fn http(vm: &Vm, machine: &Machine) -> Result<()> {
    let port = publish(vm, "tcp_http", HTTP_PORT).await?;
    let (mut against_link, mut against_loopback) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let raw =
            tokio::task::block_in_place(|| Baseline::page_time(machine, CONNECTIONS, ANSWERS))?;
        let time = request_pages(&port).await?;
        against_link.push((time, raw));
        let one = measure_in_guest(vm, "tcp_ask", "").await?;
        against_loopback.push((time, one.mul_f64(ANSWERS as f64)));
    }
    let rate = |time: Duration| ANSWERS as f64 / time.as_secs_f64();
    for (rounds, what, bound) in [
        (against_link, "the raw link", Bound::AtLeast(0.8)),
        (against_loopback, "within the guest", Bound::None),
    ] {
        let (ours, theirs) = median_round(rounds);
        row(
            "HTTP, pages of 16 KiB, 200 connections, no error",
            &format!("{:.0}/s", rate(ours)),
            &format!("{:.0}/s ({what})", rate(theirs)),
            rate(ours) / rate(theirs),
            bound,
        );
    }
    port.close().await;
    Ok(())
}

/// Returns how long all clients together take.
async fn request_pages(port: &PublishedPort) -> Result<Duration> {
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = TcpStream::connect(port.address()).await?;
        client.set_nodelay(true)?;
        // A first page, not measured, establishes the connection to the guest.
        page(&mut client).await?;
        clients.push(client);
    }
    let begun = Instant::now();
    let mut asking = JoinSet::new();
    for mut client in clients {
        asking.spawn(async move {
            for _ in 0..ANSWERS / CONNECTIONS as usize {
                page(&mut client).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked??;
    }
    Ok(begun.elapsed())
}

/// Requests and reads a page.
async fn page(client: &mut TcpStream) -> Result<()> {
    const BODY: usize = 16 * 1024;
    client.write_all(HTTP_REQUEST).await?;
    let mut answer = Vec::with_capacity(BODY + 1024);
    loop {
        let read = client.read_buf(&mut answer).await?;
        ensure!(read > 0, "the server hung up");
        if let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n")
            && answer.len() >= head + 4 + BODY
        {
            ensure!(answer.starts_with(b"HTTP/1.1 200 OK"), "no page");
            ensure!(answer.len() == head + 4 + BODY, "too much");
            return Ok(());
        }
    }
}

/// Round trips of one byte.
async fn round_trip(vm: &Vm, machine: &Machine) -> Result<()> {
    let port = publish(vm, "tcp_echo", ECHO_PORT).await?;
    port.close().await;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let raw = tokio::task::block_in_place(|| Baseline::round_trips(machine, ROUND_TRIPS))?;
        let vm = vm.clone();
        let ours = tokio::spawn(async move {
            let mut connection = vm.ports().dial(ECHO_PORT).await?;
            let mut times = Vec::new();
            let mut byte = [7];
            for _ in 0..ROUND_TRIPS {
                let begun = Instant::now();
                connection.write_all(&byte).await?;
                connection.read_exact(&mut byte).await?;
                times.push(begun.elapsed());
            }
            anyhow::Ok(median(times))
        });
        let ours = ours.await.context("no round trips")??;
        rounds.push((ours, median(raw)));
    }
    let (ours, raw) = median_round(rounds);
    row(
        "p50 of a byte through a dialled connection and back",
        &format!("{} us", ours.as_micros()),
        &format!("{} us (the raw link)", raw.as_micros()),
        ours.as_secs_f64() / raw.as_secs_f64(),
        Bound::None,
    );
    Ok(())
}
