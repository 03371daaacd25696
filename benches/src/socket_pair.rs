//! The link of a backend without a VM, with nothing else on it: a pair of sockets
//! between two threads.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};

use crate::baseline::FLOOD;

/// So much is sent at once.
const PIECE: usize = 64 * 1024;

/// How long so many bytes take there and back, one after the other.
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

/// How long [`FLOOD`] bytes take.
pub fn flood_time() -> Result<Duration> {
    let (mut sender, mut receiver) = UnixStream::pair()?;
    let begun = Instant::now();
    let sending = thread::spawn(move || {
        let piece = vec![0; PIECE];
        (0..FLOOD / PIECE).try_for_each(|_| sender.write_all(&piece))
    });
    let mut buffer = vec![0; PIECE];
    let mut received = 0;
    while received < FLOOD {
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
