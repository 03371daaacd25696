//! Measures [`FLOOD_BYTES`] bytes through a VM of vmcell: as output, and as a file.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use vmcell::{
    Command, ExecEvent, Vm,
    files::{ReadOptions, WriteOptions},
};

use crate::baseline::FLOOD_BYTES;

/// The file, in `/workspace`.
const FILE: &str = "large";

/// Returns the time of so many bytes of output through `exec_stream`.
pub async fn output_time(vm: &Vm) -> Result<Duration> {
    let line = format!(
        "dd if=/dev/zero bs=256k count={} status=none",
        FLOOD_BYTES >> 18
    );
    printing_time(vm, Command::from_argv(line.split(' ')), FLOOD_BYTES).await
}

/// Returns the time in which a command prints so many bytes, from the first ones on.
pub async fn printing_time(vm: &Vm, command: Command, bytes: usize) -> Result<Duration> {
    let mut stream = vm.exec_stream(command)?;
    let mut begun = None;
    let mut received = 0;
    while let Some(event) = stream.next().await? {
        if let ExecEvent::Stdout(printed) = event {
            // As for the raw link, the time is measured from the first bytes.
            begun.get_or_insert_with(Instant::now);
            received += printed.len();
        }
    }
    ensure!(received == bytes, "received {received} bytes");
    Ok(begun.map(|begun| begun.elapsed()).unwrap_or_default())
}

/// Returns the time to write a file of so many bytes into the guest.
pub async fn write_time(vm: &Vm) -> Result<Duration> {
    let piece = bytes::Bytes::from(vec![7u8; 256 * 1024]);
    let begun = Instant::now();
    let options = WriteOptions::new().size(FLOOD_BYTES as u64);
    let files = vm.files().at("/workspace");
    let mut writer = files.writer(FILE, options).await?;
    for _ in 0..FLOOD_BYTES / piece.len() {
        writer.write(piece.clone()).await?;
    }
    writer.finish().await?;
    Ok(begun.elapsed())
}

/// Returns the time to read that file.
pub async fn read_time(vm: &Vm) -> Result<Duration> {
    let begun = Instant::now();
    let files = vm.files().at("/workspace");
    let mut reader = files.reader(FILE, ReadOptions::new()).await?;
    let mut count = 0;
    while let Some(bytes) = reader.next().await? {
        count += bytes.len();
    }
    ensure!(count == FLOOD_BYTES, "received {count} bytes");
    Ok(begun.elapsed())
}
