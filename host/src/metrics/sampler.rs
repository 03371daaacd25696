use std::{
    future::poll_fn,
    io,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, ready},
    time::{Duration, Instant, SystemTime},
};

use tokio::task::AbortHandle;

use super::{
    DiskFile, MetricsHistory,
    history::LatestSender,
    process::{ProcessFiles, ProcessUsage},
    process_count::ProcessCounter,
    reading::Reading,
    timer::PeriodicTimer,
};
use crate::{
    session::{LinkTraffic, Session},
    vmm::VmmKiller,
};

/// The task that takes a sample of a VM every second. Dropping this ends it and closes its
/// descriptors at once.
#[derive(Debug)]
pub(crate) struct Sampler {
    task: AbortHandle,
    meter: Arc<Mutex<Option<Meter>>>,
}

/// What a sampler measures.
#[derive(Debug)]
struct Meter {
    /// The VMM, and the process of its device if it has one.
    processes: Vec<ProcessFiles>,
    /// `None` before sampling begins.
    timer: Option<PeriodicTimer>,
    disk: DiskFile,
    session: Arc<Session>,
    history: Arc<MetricsHistory>,
    latest: LatestSender,
    began: Instant,
    before: Totals,
    /// The bytes of the link that are for the metrics only, which do not count.
    own_traffic: LinkTraffic,
}

/// What was used until an instant.
#[derive(Clone, Copy, Debug)]
struct Totals {
    at: Instant,
    cpu: Duration,
    traffic: LinkTraffic,
}

const PERIOD: Duration = Duration::from_secs(1);

impl Sampler {
    /// Starts to sample a VM that runs: the processes of its VMM, its disk and its link.
    pub(crate) fn start(
        processes: Vec<VmmKiller>,
        disk: DiskFile,
        session: Arc<Session>,
    ) -> (Self, Arc<MetricsHistory>) {
        let (history, latest) = MetricsHistory::new();
        let history = Arc::new(history);
        let began = Instant::now();
        let shared = Arc::new(Mutex::new(Some(Meter {
            processes: Vec::new(),
            timer: None,
            disk,
            before: Totals {
                at: began,
                cpu: Duration::ZERO,
                traffic: session.traffic(),
            },
            session,
            history: history.clone(),
            own_traffic: LinkTraffic::default(),
            latest,
            began,
        })));
        let meter = shared.clone();
        let task = tokio::spawn(async move {
            // Here and not before, so that the start of a VM does not wait for it.
            if with_meter(&meter, |meter| meter.open(&processes)).is_none() {
                return;
            }
            drop(processes);
            let mut counter = ProcessCounter::default();
            while let Some(session) = next_second(&meter).await {
                // First, so that everything else is of the time of the sample.
                let processes = counter.count(&session).await;
                drop(session);
                let sampled = with_meter(&meter, |meter| {
                    meter.own_traffic = counter.traffic();
                    meter.sample(processes)
                });
                if sampled.is_none() {
                    return;
                }
            }
        });
        let sampler = Self {
            task: task.abort_handle(),
            meter: shared,
        };
        (sampler, history)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.task.abort();
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        *meter = None;
    }
}

/// Waits for the next second, and returns the session of the VM. `None` if the VM has ended.
async fn next_second(meter: &Mutex<Option<Meter>>) -> Option<Arc<Session>> {
    // Only the meter has the timer, so that its descriptor is closed with the meter.
    poll_fn(|context| {
        let meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = meter.as_ref().map(|it| (it.timer.as_ref(), &it.session));
        let Some((Some(timer), session)) = parts else {
            return Poll::Ready(None);
        };
        let expired = ready!(timer.poll_expired(context));
        Poll::Ready(expired.ok().map(|()| session.clone()))
    })
    .await
}

/// Does something with the meter. `None` if the VM has ended.
fn with_meter(
    meter: &Mutex<Option<Meter>>,
    work: impl FnOnce(&mut Meter) -> io::Result<()>,
) -> Option<()> {
    let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
    let worked = work(meter.as_mut()?);
    if let Err(error) = worked {
        tracing::debug!(%error, "no more metrics: the VMM cannot be measured");
        // Tells those who wait that no sample will come.
        *meter = None;
        return None;
    }
    Some(())
}

impl Meter {
    /// Opens what is measured, and takes the values that the first sample is relative to.
    fn open(&mut self, processes: &[VmmKiller]) -> io::Result<()> {
        let opened = processes
            .iter()
            .map(|process| ProcessFiles::open(process.pid(), process.pidfd()));
        self.processes = opened.collect::<io::Result<_>>()?;
        self.timer = Some(PeriodicTimer::start(PERIOD)?);
        self.before = self.totals(self.usage()?);
        Ok(())
    }

    fn sample(&mut self, processes: Option<u32>) -> io::Result<()> {
        let usage = self.usage()?;
        let before = self.before;
        let now = self.totals(usage);
        let reading = Reading {
            elapsed: now.at.saturating_duration_since(self.began),
            time: SystemTime::now(),
            interval: now.at.saturating_duration_since(before.at),
            cpu: now.cpu.saturating_sub(before.cpu),
            memory_bytes: usage.memory_bytes,
            disk_bytes: self.disk.allocated_bytes(),
            processes,
            received_bytes: now.traffic.received.saturating_sub(before.traffic.received),
            sent_bytes: now.traffic.sent.saturating_sub(before.traffic.sent),
        };
        self.before = now;
        self.history.add(&reading, &self.latest);
        Ok(())
    }

    fn usage(&self) -> io::Result<ProcessUsage> {
        let mut all = ProcessUsage::default();
        for process in &self.processes {
            let usage = process.read()?;
            all.cpu = all.cpu.saturating_add(usage.cpu);
            all.memory_bytes = all.memory_bytes.saturating_add(usage.memory_bytes);
        }
        Ok(all)
    }

    fn totals(&self, usage: ProcessUsage) -> Totals {
        Totals {
            at: Instant::now(),
            cpu: usage.cpu,
            traffic: self.session.traffic() - self.own_traffic,
        }
    }
}
