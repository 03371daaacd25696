//! Services: how long the host takes to notice that one is ready.
//!
//! Prints a table; the figures of one run are in `benches/README.md`.
//!
//! The time is measured from the moment at which the guest's program listens,
//! prints a line or creates a file. The program reports that moment by the guest's
//! clock. To find the offset between the clocks, the host requests the guest's time
//! many times and uses the fastest answer. Half of its round trip is the error of
//! the offset, which is added to each figure.

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
    summary::{fact, head, median},
};

const SERVICES: u16 = 40;
const ROUND_TRIPS: usize = 200;

/// The promised time for files and log lines, without a round trip.
const AT_ONCE: Duration = Duration::from_millis(20);

/// The requests to the guest's program.
const GET_TIME: u8 = b't';
const BECOME_READY: u8 = b'r';

fn main() -> Result<()> {
    let image = vmcell_rootfs::recipe::base().cached()?.path;
    Runtime::new()?.block_on(async {
        let vm = Vm::builder().image(image).start().await?;
        vm.files().write("/bench", guest_program()?).await?;
        ensure!(vm.exec(["chmod", "+x", "/bench"]).await?.success());
        head();
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
        vm.kill().await?;
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
    /// Returns how the service becomes ready, and the probe that detects it.
    fn readiness(self, number: u16) -> (String, Probe) {
        match self {
            // In memory, so that the guest's disk is not measured.
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

/// Returns the time from the moment at which a service is ready until the host
/// knows.
async fn time(vm: &Vm, kind: Kind, number: u16) -> Result<Duration> {
    let (action, probe) = kind.readiness(number);
    let port = 2000 + 100 * kind as u16 + number;
    let command = Command::new("/bench")
        .env("vmcell_bench", "ready")
        .env("vmcell_ready", action)
        .env("vmcell_control", port.to_string());
    let spec = ServiceSpec::new(command).ready(probe);
    let name = format!("{kind:?}-{number}");
    let service = vm.services().start(&name, spec).await?;
    let mut program = Program::dial(vm, port).await?;
    // At a different moment between two attempts for each service.
    let interval = Readiness::DEFAULT_INTERVAL.as_millis() as u64;
    let pause = u64::from(number) * interval / u64::from(SERVICES);
    tokio::time::sleep(Duration::from_millis(pause)).await;
    // The host waits already, as in real programs.
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

    /// Sends a request. Returns the guest's clock at the time of the request.
    async fn ask(&mut self, question: u8) -> Result<u64> {
        self.0.write_u8(question).await?;
        Ok(self.0.read_u64_le().await?)
    }

    async fn compare_clocks(&mut self) -> Result<Clock> {
        let mut best: Option<Clock> = None;
        for _ in 0..ROUND_TRIPS {
            let asked = Instant::now();
            let guest = self.ask(GET_TIME).await?;
            let error = asked.elapsed() / 2;
            if best.as_ref().is_none_or(|best| error < best.error) {
                let host = asked + error;
                best = Some(Clock { host, guest, error });
            }
        }
        best.context("no round trip")
    }
}

/// The same moment on both clocks, and the error of that.
struct Clock {
    host: Instant,
    guest: u64,
    error: Duration,
}

impl Clock {
    /// Returns the time from a moment of the guest's clock to one of the host's; zero
    /// if it was before.
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
