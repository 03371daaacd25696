//! Measures many concurrent output streams, and verifies their contents.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::Result;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;
use vmcell::{Command, Vm};

use crate::memory;

/// The result of a run with many concurrent streams.
pub struct ConcurrentStreams {
    /// The number of streams whose contents were correct.
    pub equal: usize,
    /// The growth of this process's resident memory meanwhile, in MiB.
    pub grown_mib: usize,
    /// The total throughput in bytes per second.
    pub rate: f64,
}

impl ConcurrentStreams {
    /// Runs `count` commands in the VM that print `size` bytes each of
    /// `/dev/shm/data`, from different offsets. `receive` runs a shell line in the
    /// VM and returns the SHA-256 of its output as received by the host.
    pub async fn run<F>(
        vm: &Vm,
        (count, size): (usize, usize),
        receive: impl Fn(Vm, String) -> F,
    ) -> Result<Self>
    where
        F: Future<Output = Result<Sha256>> + Send + 'static,
    {
        let before = memory::resident()?;
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let blocks = size >> 16;
            let line =
                format!("dd if=/dev/shm/data bs=64k skip={number} count={blocks} status=none");
            let received = receive(vm.clone(), line.clone());
            tasks.spawn(async move { anyhow::Ok((line, received.await?)) });
        }
        let mut largest = before;
        let mut hashes = Vec::new();
        let mut samples = tokio::time::interval(Duration::from_millis(20));
        loop {
            tokio::select! {
                done = tasks.join_next() => match done {
                    Some(done) => hashes.push(done??),
                    None => break,
                },
                _ = samples.tick() => largest = largest.max(memory::resident()?),
            }
        }
        let time = begun.elapsed();
        let mut equal = 0;
        for (line, hash) in hashes {
            let in_guest = Command::shell(format!("{line} | sha256sum"));
            let in_guest = vm.exec_command(in_guest.timeout(Duration::from_secs(120)));
            let hash = hash.finalize();
            let on_host: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            equal += usize::from(in_guest.await?.stdout_text().starts_with(&on_host));
        }
        Ok(Self {
            equal,
            grown_mib: (largest - before) >> 20,
            rate: (count * size) as f64 / time.as_secs_f64(),
        })
    }
}
