//! Baselines for file operations in the guest, without an agent.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{FileExt, OpenOptionsExt, fchown},
    path::Path,
    time::{Instant, SystemTime},
};

use crate::{
    FLOOD_BYTES,
    sys::{Child, fork, fork_exec_wait, mount, new_pipe, shared_memory, wait_for},
    write_all,
};

/// The number of files that `make_files` creates, in total and per directory.
const FILES: usize = 20_000;
const IN_A_DIRECTORY: usize = 200;

const MADE: &str = "/workspace/made";

/// The user of the base image that owns `/workspace`.
const OWNER: u32 = 1000;

/// Creates files of 1 KiB, and sets their owner and time as a pushed tree has them.
pub(crate) fn make() -> io::Result<u128> {
    let begun = Instant::now();
    let time = SystemTime::UNIX_EPOCH;
    fs::create_dir(MADE)?;
    for number in 0..FILES {
        let directory = Path::new(MADE).join(format!("d{}", number / IN_A_DIRECTORY));
        if number % IN_A_DIRECTORY == 0 {
            fs::create_dir(&directory)?;
        }
        let mut file = File::create_new(directory.join(format!("f{number}")))?;
        file.write_all(&[number as u8; 1024])?;
        fchown(&file, Some(OWNER), Some(OWNER))?;
        file.set_modified(time)?;
    }
    Ok(begun.elapsed().as_nanos())
}

/// Reads the metadata of every created file.
pub(crate) fn stat() -> io::Result<u128> {
    each_file(|file| file.metadata().map(drop))
}

/// Reads every created file.
pub(crate) fn read() -> io::Result<u128> {
    let mut buffer = [0; 4096];
    each_file(|file| {
        let mut file = File::open(file.path())?;
        file.metadata()?;
        file.read(&mut buffer).map(drop)
    })
}

fn each_file(mut act: impl FnMut(&fs::DirEntry) -> io::Result<()>) -> io::Result<u128> {
    let begun = Instant::now();
    let mut count = 0;
    for directory in fs::read_dir(MADE)? {
        for file in fs::read_dir(directory?.path())? {
            act(&file?)?;
            count += 1;
        }
    }
    if count != FILES {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(begun.elapsed().as_nanos())
}

/// Returns the median time of fork, exec and wait while another process syncs
/// `/workspace/dirty` to disk.
pub(crate) fn spawn_beside_sync() -> io::Result<u128> {
    let dirty = File::open("/workspace/dirty")?;
    let syncing = Child::start(|| dirty.sync_all())?;
    let mut times = Vec::new();
    while !syncing.has_ended()? {
        let begun = Instant::now();
        fork_exec_wait(c"/bin/true")?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2);
    median.map_or(Err(io::ErrorKind::NotFound.into()), |time| {
        Ok(time.as_nanos())
    })
}

/// The size of one direct (`O_DIRECT`) read or write.
const PIECE: usize = 1 << 20;

/// Shared buffers that two processes pass back and forth: one uses the disk, the
/// other the port.
struct SharedPieces {
    memory: &'static mut [u8],
    /// Pipes. A byte passes the next piece to the other process.
    give: File,
    take: File,
}

const PIECES: usize = 4;

impl SharedPieces {
    /// Forks, and returns whether this is the child, and its side of the buffers.
    /// The parent begins with all pieces.
    fn share() -> io::Result<(bool, Self)> {
        let memory = shared_memory(PIECES * PIECE)?;
        let (full, fill) = new_pipe(4096)?;
        let (empty, mut drain) = new_pipe(4096)?;
        drain.write_all(&[0; PIECES])?;
        let is_child = fork()?;
        let (give, take) = if is_child {
            (drain, full)
        } else {
            (fill, empty)
        };
        Ok((is_child, Self { memory, give, take }))
    }

    /// Calls `act` for piece after piece, `total` bytes in all.
    fn each(
        mut self,
        total: usize,
        mut act: impl FnMut(&mut [u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        for number in 0..total / PIECE {
            self.take.read_exact(&mut [0])?;
            let start = number % PIECES * PIECE;
            act(
                &mut self.memory[start..start + PIECE],
                (number * PIECE) as u64,
            )?;
            self.give.write_all(&[0])?;
        }
        // Keeps the pipes open: the other process still writes to them.
        std::mem::forget(self);
        Ok(())
    }
}

fn file_on_disk() -> io::Result<File> {
    fs::create_dir_all("/disk")?;
    mount(c"/dev/vda", c"/disk", c"ext4")?;
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_DIRECT)
        .open("/disk/file")
}

/// Writes the data from the port to a file.
pub(crate) fn relay_in(port: &mut File) -> io::Result<String> {
    let file = file_on_disk()?;
    let (writes, pieces) = SharedPieces::share()?;
    if writes {
        pieces.each(FLOOD_BYTES, |piece, at| file.write_all_at(piece, at))?;
        port.write_all(b"e")?;
        return Ok("written".to_owned());
    }
    port.write_all(b"g")?;
    pieces.each(FLOOD_BYTES, |mut piece, _| {
        while !piece.is_empty() {
            match port.read(piece) {
                Ok(count) => piece = &mut piece[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for(port, libc::POLLIN);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })?;
    Ok("read".to_owned())
}

/// Sends a file through the port.
pub(crate) fn relay_out(port: &mut File) -> io::Result<String> {
    let file = file_on_disk()?;
    let zeros = shared_memory(PIECE)?;
    for at in (0..FLOOD_BYTES).step_by(PIECE) {
        file.write_all_at(zeros, at as u64)?;
    }
    wait_for(port, libc::POLLIN);
    let _ = port.read(&mut [0; 1]);
    let (sends, pieces) = SharedPieces::share()?;
    if sends {
        pieces.each(FLOOD_BYTES, |piece, _| write_all(port, piece))?;
        return Ok("sent".to_owned());
    }
    pieces.each(FLOOD_BYTES, |piece, at| file.read_exact_at(piece, at))?;
    Ok("read".to_owned())
}
