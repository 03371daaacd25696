//! Many who bring bytes here at once, and whether all of them came.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::Result;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;
use vmcell::{Command, Vm};

use crate::memory;

/// What came of a crowd.
pub struct Crowd {
    /// How many brought what they should.
    pub equal: usize,
    /// By how many MiB this program grew meanwhile.
    pub grown_mib: usize,
    /// How many bytes came a second.
    pub rate: f64,
}

impl Crowd {
    /// Has `count` of them print `size` bytes each, of those in `/dev/shm/data`,
    /// everybody from another place on. `bring` has the VM run a line and
    /// answers with the SHA-256 of what came here.
    pub async fn gather<F>(
        vm: &Vm,
        (count, size): (usize, usize),
        bring: impl Fn(Vm, String) -> F,
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
            let brought = bring(vm.clone(), line.clone());
            tasks.spawn(async move { anyhow::Ok((line, brought.await?)) });
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
            let there = Command::shell(format!("{line} | sha256sum"));
            let there = vm.exec_command(there.timeout(Duration::from_secs(120)));
            let hash = hash.finalize();
            let here: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            equal += usize::from(there.await?.stdout_text().starts_with(&here));
        }
        Ok(Self {
            equal,
            grown_mib: (largest - before) >> 20,
            rate: (count * size) as f64 / time.as_secs_f64(),
        })
    }
}
