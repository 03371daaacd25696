//! Services: how long it takes to know that one is ready.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.
//!
//! The clock is the host's, and it runs from before the guest is told to go
//! until [`Service::ready`] has returned. So what is measured has in it the way
//! of that word into the guest, through two shells, and the start of the
//! program that listens: more than what is promised is counted from.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;
use vmcell::{
    Command, ExecEvent, ExecStream, Vm,
    service::{Probe, Readiness, Service, ServiceSpec},
};
use vmcell_benches::summary::{fact, median};

const SERVICES: u16 = 40;
const ROUND_TRIPS: usize = 200;

/// What is promised for files and log lines, beside a round trip.
const AT_ONCE: Duration = Duration::from_millis(20);

fn main() -> Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    Runtime::new()?.block_on(async {
        let vm = Vm::builder().image(image).start().await?;
        println!("| what | vmcell | baseline | ratio | promised | |");
        println!("|---|---|---|---|---|---|");
        let round_trip = round_trip(&vm).await?;
        let mut starter = Starter::new(&vm).await?;
        for (kind, limit) in [
            (Kind::File, AT_ONCE),
            (Kind::Log, AT_ONCE),
            (Kind::Tcp, Readiness::DEFAULT_INTERVAL),
        ] {
            let mut times = Vec::new();
            for number in 0..SERVICES {
                times.push(starter.time(&vm, kind, number).await?);
            }
            times.sort();
            let slowest = times.last().copied().unwrap_or_default();
            let limit = limit + round_trip;
            fact(
                &format!("from the word to begin to `ready`, {kind:?} probe"),
                &format!(
                    "p50 {:.1} ms, slowest of {SERVICES} {:.1} ms",
                    millis(median(times)),
                    millis(slowest)
                ),
                &format!(
                    "at most {:.1} ms, {:.1} ms round trip included",
                    millis(limit),
                    millis(round_trip)
                ),
                slowest <= limit,
            );
        }
        vm.kill().await;
        Ok(())
    })
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    File,
    Log,
    Tcp,
}

impl Kind {
    /// What the service does when it is told to, and how that is noticed.
    fn work(self, number: u16) -> (String, Probe) {
        match self {
            Self::File => {
                let path = format!("/tmp/ready-{number}");
                (format!(": > {path}; exec sleep 1000"), Probe::file(path))
            }
            Self::Log => (
                "echo listening; exec sleep 1000".to_owned(),
                Probe::log("^listening$"),
            ),
            Self::Tcp => {
                let port = 1000 + number;
                (format!("exec nc -ll -p {port} -e true"), Probe::tcp(port))
            }
        }
    }
}

/// A shell in the guest that says the word to whom it is told, without a
/// process of its own for that.
struct Starter {
    shell: ExecStream,
}

impl Starter {
    async fn new(vm: &Vm) -> Result<Self> {
        let line = "echo here; while read name; do echo go > /tmp/go-$name; done";
        let mut shell = vm.exec_stream(Command::shell(line).stdin_stream())?;
        while let ExecEvent::Started { .. } = shell.next().await?.context("it ended")? {}
        Ok(Self { shell })
    }

    /// How long it takes from the word until the service is known to be ready.
    async fn time(&mut self, vm: &Vm, kind: Kind, number: u16) -> Result<Duration> {
        let name = format!("{kind:?}-{number}");
        let (work, probe) = kind.work(number);
        let line = format!("mkfifo /tmp/go-{name}; echo waiting; read go < /tmp/go-{name}; {work}");
        let spec = ServiceSpec::new(Command::shell(line)).ready(probe);
        let service = vm.services().start(&name, spec).await?;
        let mut log = service.logs().all().follow(true).stream().await?;
        log.next().await?.context("it ended")?;
        // At another moment between two attempts each time.
        let interval = Readiness::DEFAULT_INTERVAL.as_millis() as u64;
        let pause = u64::from(number) * interval / u64::from(SERVICES);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        // Somebody waits already, as programs do.
        let waiting = tokio::spawn(ready(service.clone()));
        ensure!(vm.health().await.is_healthy());
        let begun = Instant::now();
        let word = format!("{name}\n");
        ensure!(self.shell.input().write(word).await, "the shell has ended");
        let ready = waiting.await??;
        service.stop().await?;
        Ok(ready.duration_since(begun))
    }
}

async fn ready(service: Service) -> Result<Instant> {
    service.ready().await?;
    Ok(Instant::now())
}

async fn round_trip(vm: &Vm) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUND_TRIPS {
        times.push(vm.health().await.round_trip.context("no answer")?);
    }
    Ok(median(times))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
