//! Services: how long it takes to know that one is ready.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.
//!
//! What is promised counts from the moment in which the guest's program listens,
//! prints a line or makes a file. Only the guest knows that moment. So the
//! program tells the time on its own clock, which is asked many times what time
//! it is: the quickest answer says how the clocks differ, and half of the time it
//! took is how wrong that can be. It is added to each figure.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    runtime::Runtime,
};
use vmcell::{
    Command, Error, Vm,
    port::{Connection, PortError},
    service::{Probe, Readiness, Service, ServiceSpec},
};
use vmcell_benches::{
    baseline::guest_program,
    summary::{fact, median},
};

const SERVICES: u16 = 40;
const ROUND_TRIPS: usize = 200;

/// What is promised for files and log lines, beside a round trip.
const AT_ONCE: Duration = Duration::from_millis(20);

/// What the guest's program is asked.
const WHAT_TIME_IS_IT: u8 = b't';
const BECOME_READY: u8 = b'r';

fn main() -> Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    Runtime::new()?.block_on(async {
        let vm = Vm::builder().image(image).start().await?;
        vm.files().write("/bench", guest_program()?).await?;
        ensure!(vm.exec(["chmod", "+x", "/bench"]).await?.success());
        println!("| what | vmcell | baseline | ratio | promised | |");
        println!("|---|---|---|---|---|---|");
        let round_trip = round_trip(&vm).await?;
        for (kind, limit) in [
            (Kind::File, AT_ONCE),
            (Kind::Log, AT_ONCE),
            (Kind::Tcp, Readiness::DEFAULT_INTERVAL),
        ] {
            let mut times = Vec::new();
            for number in 0..SERVICES {
                times.push(time(&vm, kind, number).await?);
            }
            times.sort();
            let slowest = times.last().copied().unwrap_or_default();
            let limit = limit + round_trip;
            fact(
                &format!("to `ready`, {kind:?} probe"),
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
            // In memory: the guest's disk is not what is measured.
            Self::File => {
                let path = format!("/dev/shm/ready-{number}");
                (format!("file:{path}"), Probe::file(path))
            }
            Self::Log => ("log:listening".to_owned(), Probe::log("^listening$")),
            Self::Tcp => {
                let port = 1000 + number;
                (format!("tcp:{port}"), Probe::tcp(port))
            }
        }
    }
}

/// How long it takes from the moment in which a service is ready until that is
/// known.
async fn time(vm: &Vm, kind: Kind, number: u16) -> Result<Duration> {
    let (work, probe) = kind.work(number);
    let port = 2000 + 100 * kind as u16 + number;
    let command = Command::new("/bench")
        .env("vmcell_bench", "ready")
        .env("vmcell_ready", work)
        .env("vmcell_control", port.to_string());
    let spec = ServiceSpec::new(command).ready(probe);
    let name = format!("{kind:?}-{number}");
    let service = vm.services().start(&name, spec).await?;
    let mut program = Program::dial(vm, port).await?;
    // At another moment between two attempts each time.
    let interval = Readiness::DEFAULT_INTERVAL.as_millis() as u64;
    let pause = u64::from(number) * interval / u64::from(SERVICES);
    tokio::time::sleep(Duration::from_millis(pause)).await;
    // Somebody waits already, as programs do.
    let waiting = tokio::spawn(ready(service.clone()));
    ensure!(vm.health().await.is_healthy());
    let moment = program.ask(BECOME_READY).await?;
    let ready = waiting.await??;
    let clock = program.compare_clocks().await?;
    service.stop().await?;
    Ok(clock.since(moment, ready) + clock.error)
}

async fn ready(service: Service) -> Result<Instant> {
    service.ready().await?;
    Ok(Instant::now())
}

/// A connection to the guest's program.
struct Program(Connection);

impl Program {
    async fn dial(vm: &Vm, port: u16) -> Result<Self> {
        let begun = Instant::now();
        loop {
            match vm.ports().dial(port).await {
                Err(Error::Port(PortError::NobodyListens { .. }))
                    if begun.elapsed() < Duration::from_secs(20) => {}
                dialled => return Ok(Self(dialled?)),
            }
        }
    }

    /// What the guest's clock says when it is asked this.
    async fn ask(&mut self, question: u8) -> Result<u64> {
        self.0.write_u8(question).await?;
        Ok(self.0.read_u64_le().await?)
    }

    async fn compare_clocks(&mut self) -> Result<Clock> {
        let mut best: Option<Clock> = None;
        for _ in 0..ROUND_TRIPS {
            let asked = Instant::now();
            let guest = self.ask(WHAT_TIME_IS_IT).await?;
            let error = asked.elapsed() / 2;
            if best.as_ref().is_none_or(|best| error < best.error) {
                let host = asked + error;
                best = Some(Clock { host, guest, error });
            }
        }
        best.context("nobody was asked")
    }
}

/// The same moment on both clocks, and how wrong that can be.
struct Clock {
    host: Instant,
    guest: u64,
    error: Duration,
}

impl Clock {
    /// How long after a moment of the guest's one of the host's was. Nothing, if
    /// it was before.
    fn since(&self, guest: u64, host: Instant) -> Duration {
        let to_here = Duration::from_nanos(self.guest.saturating_sub(guest));
        (host + to_here).saturating_duration_since(self.host)
    }
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
