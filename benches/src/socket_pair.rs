//! The baseline for the link of a backend without a VM: a pair of sockets between
//! two threads.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};

use crate::baseline::FLOOD_BYTES;

/// The size of one write.
const PIECE: usize = 64 * 1024;

/// Returns the times of round trips of single bytes, one after the other.
pub fn round_trips(count: usize) -> Result<Vec<Duration>> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    let echo = thread::spawn(move || {
        let mut byte = [0];
        for _ in 0..count {
            theirs.read_exact(&mut byte)?;
            theirs.write_all(&byte)?;
        }
        Ok(())
    });
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        ours.write_all(&[7])?;
        ours.read_exact(&mut [0])?;
        times.push(begun.elapsed());
    }
    join(echo)?;
    Ok(times)
}

/// Returns the time to transfer [`FLOOD_BYTES`] bytes.
pub fn flood_time() -> Result<Duration> {
    let (mut sender, mut receiver) = UnixStream::pair()?;
    let begun = Instant::now();
    let sending = thread::spawn(move || {
        let piece = vec![0; PIECE];
        (0..FLOOD_BYTES / PIECE).try_for_each(|_| sender.write_all(&piece))
    });
    let mut buffer = vec![0; PIECE];
    let mut received = 0;
    while received < FLOOD_BYTES {
        received += receiver.read(&mut buffer)?;
    }
    let time = begun.elapsed();
    join(sending)?;
    Ok(time)
}

fn join(thread: JoinHandle<io::Result<()>>) -> Result<()> {
    let ended = thread.join();
    Ok(ended.map_err(|_| anyhow!("the other end failed"))??)
}
