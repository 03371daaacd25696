//! The baseline: plain QEMU with the same kernel and devices, without vmcell.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use command_fds::{CommandFdExt, FdMapping};

/// Timeout for reads from the guest and for starting the vsock device.
const GUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of bytes that the guest's `flood` sends.
pub const FLOOD_BYTES: usize = 256 * 1024 * 1024;

/// The request that clients send to the guest's HTTP servers.
pub const HTTP_REQUEST: &[u8] = b"GET /page HTTP/1.1\r\nHost: guest\r\nAccept: */*\r\n\r\n";

/// The part of QEMU's command line that the baseline shares with vmcell. It is
/// read from a running VMM that vmcell started, so that both stay the same.
pub struct Machine {
    options: Vec<String>,
    kernel_arguments: String,
    image: PathBuf,
    /// The program that implements its vsock device, if that is its link.
    vsock: Option<PathBuf>,
}

impl Machine {
    /// Reads the options of the QEMU that runs `vm`, whose image is `image`.
    pub fn of(vm: &vmcell::Vm, image: &Path) -> Result<Self> {
        let words = command_line(&format!("vmcell-{}", vm.id()))?.1;
        let value = |option: &str| {
            let place = words.iter().position(|word| word == option);
            let value = place.and_then(|place| words.get(place + 1));
            value
                .cloned()
                .with_context(|| format!("QEMU has no {option}"))
        };
        let mut options = Vec::new();
        for option in ["-machine", "-cpu", "-smp", "-m", "-kernel", "-sandbox"] {
            options.push(option.to_owned());
            options.push(value(option)?);
        }
        let mut vsock = None;
        if let Ok(memory) = value("-object") {
            options.extend(["-object".to_owned(), memory]);
            let socket = vmcell::backend::RunFolder::base()
                .join(vm.id())
                .join("vsock");
            let (program, _) = command_line(&socket.to_string_lossy())?;
            vsock = Some(program);
        }
        Ok(Self {
            options,
            kernel_arguments: value("-append")?,
            image: image.to_owned(),
            vsock,
        })
    }

    /// Returns the path of the kernel.
    pub fn kernel(&self) -> &str {
        let place = self.options.iter().position(|word| word == "-kernel");
        let value = place.and_then(|place| self.options.get(place + 1));
        value.map_or("", String::as_str)
    }
}

/// Returns the program and all arguments of the process that has this argument.
pub(crate) fn command_line(argument: &str) -> Result<(PathBuf, Vec<String>)> {
    for entry in std::fs::read_dir("/proc")? {
        let process = entry?.path();
        let Ok(bytes) = std::fs::read(process.join("cmdline")) else {
            continue;
        };
        let words: Vec<_> = bytes
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        if words.iter().any(|word| word == argument) {
            return Ok((std::fs::read_link(process.join("exe"))?, words));
        }
    }
    bail!("no process has the argument {argument}")
}

/// A running guest that performs one task.
pub struct Baseline {
    qemu: Child,
    console: BufReader<UnixStream>,
    port: UnixStream,
    _vsock: Option<Vsock>,
    _initramfs: tempfile::NamedTempFile,
}

impl Drop for Baseline {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Baseline {
    /// Starts a guest for `task`; see the program in `guest`.
    pub fn start(task: &str, machine: &Machine) -> Result<Self> {
        let initramfs = initramfs()?;
        let (console, console_of_qemu) = UnixStream::pair()?;
        let Machine {
            options,
            kernel_arguments,
            image,
            vsock,
        } = machine;
        let mut vsock = vsock.as_deref().map(Vsock::start).transpose()?;
        let (mut port, port_of_qemu) = UnixStream::pair()?;
        let (link, port_of_qemu) = match &mut vsock {
            Some(vsock) => (VSOCK, vsock.connect()?.into()),
            None => (PORT, OwnedFd::from(port_of_qemu)),
        };
        let qemu = Command::new("qemu-system-x86_64")
            .args([
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
            ])
            .args(options)
            .arg("-initrd")
            .arg(initramfs.path())
            .arg("-append")
            .arg(format!(
                "{kernel_arguments} vmcell_bench={task} vmcell_link={}",
                if vsock.is_some() { "vsock" } else { "port" }
            ))
            .args([
                "-chardev",
                "socket,id=console,fd=3",
                "-serial",
                "chardev:console",
            ])
            .arg("-drive")
            .arg(format!(
                "if=none,id=disk,format=raw,{},file={}",
                // Writes are discarded with the guest.
                if task.contains("file") {
                    "snapshot=on"
                } else {
                    "readonly=on"
                },
                image.display()
            ))
            .args(["-device", "virtio-blk-device,drive=disk"])
            .args(["-chardev", "socket,id=port,fd=4"])
            .args(link)
            .fd_mappings(vec![
                mapping(console_of_qemu.into(), 3),
                mapping(port_of_qemu, 4),
            ])?
            .stdin(Stdio::null())
            .spawn()
            .context("QEMU does not start")?;
        if let Some(vsock) = &vsock {
            port = vsock.ready.accept()?.0;
        }
        for socket in [&console, &port] {
            socket.set_read_timeout(Some(GUEST_TIMEOUT))?;
        }
        Ok(Self {
            qemu,
            console: BufReader::new(console),
            port,
            _vsock: vsock,
            _initramfs: initramfs,
        })
    }

    /// Returns the time from the start of QEMU to a line from PID 1.
    pub fn boot_time(machine: &Machine) -> Result<Duration> {
        let start = Instant::now();
        let mut guest = Self::start("boot", machine)?;
        ensure!(guest.read_result()? == "ready");
        Ok(start.elapsed())
    }

    /// Returns the times of round trips of 64 bytes through the port.
    pub fn round_trips(machine: &Machine, count: usize) -> Result<Vec<Duration>> {
        Self::echoes("echo", machine, count, &mut [7; 64])
    }

    /// Returns the times of single keys through the port to a terminal, and of
    /// their echoes back.
    pub fn keys(machine: &Machine, count: usize) -> Result<Vec<Duration>> {
        Self::echoes("relay_pty", machine, count, &mut [b'x'])
    }

    fn echoes(
        task: &str,
        machine: &Machine,
        count: usize,
        buffer: &mut [u8],
    ) -> Result<Vec<Duration>> {
        let mut guest = Self::start(task, machine)?;
        let mut round_trip = || {
            let start = Instant::now();
            guest.port.write_all(buffer)?;
            guest.port.read_exact(buffer)?;
            Ok(start.elapsed())
        };
        // The first one waits for the boot.
        round_trip()?;
        (0..count).map(|_| round_trip()).collect()
    }

    /// Returns how long the guest takes to send [`FLOOD_BYTES`] bytes through the port.
    pub fn flood_time(machine: &Machine) -> Result<Duration> {
        Self::flood("flood", machine)
    }

    /// The same for bytes that another process writes to a pipe.
    pub fn pipe_time(machine: &Machine) -> Result<Duration> {
        Self::flood("relay_pipe", machine)
    }

    /// The same with splice(2), without a copy, which an agent cannot use.
    pub fn splice_time(machine: &Machine) -> Result<Duration> {
        Self::flood("relay_splice", machine)
    }

    /// The same for bytes that another process writes to a TCP connection.
    pub fn connection_time(machine: &Machine) -> Result<Duration> {
        Self::flood("relay_tcp", machine)
    }

    /// The same for bytes of a file on the disk.
    pub fn file_out_time(machine: &Machine) -> Result<Duration> {
        Self::flood("relay_file_out", machine)
    }

    /// As [`flood_time`](Self::flood_time), with a program between the guest and this one
    /// that only passes the bytes on.
    pub fn passed_on_time(machine: &Machine) -> Result<Duration> {
        let mut guest = Self::start("flood", machine)?;
        let (mut ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(GUEST_TIMEOUT))?;
        let mut program = Command::new("cat")
            .stdin(OwnedFd::from(guest.port.try_clone()?))
            .stdout(OwnedFd::from(theirs))
            .spawn()?;
        guest.port.write_all(b"g")?;
        let time = receive_flood(&mut ours);
        program.kill()?;
        program.wait()?;
        time
    }

    fn flood(task: &str, machine: &Machine) -> Result<Duration> {
        let mut guest = Self::start(task, machine)?;
        guest.port.write_all(b"g")?;
        receive_flood(&mut guest.port)
    }

    /// Returns how long the guest takes to receive [`FLOOD_BYTES`] bytes through the port.
    pub fn drain_time(machine: &Machine) -> Result<Duration> {
        Self::drain("drain", machine)
    }

    /// The same with the bytes written to a file on the disk.
    pub fn file_in_time(machine: &Machine) -> Result<Duration> {
        Self::drain("relay_file_in", machine)
    }

    fn drain(task: &str, machine: &Machine) -> Result<Duration> {
        let mut guest = Self::start(task, machine)?;
        let mut byte = [0];
        guest.port.read_exact(&mut byte)?;
        let buffer = vec![7; 256 * 1024];
        let start = Instant::now();
        for _ in 0..FLOOD_BYTES / buffer.len() {
            guest.port.write_all(&buffer)?;
        }
        guest.port.read_exact(&mut byte)?;
        Ok(start.elapsed())
    }

    /// Returns how long the guest takes to send `answers` pages in total through
    /// the port to `connections` clients. Each requests the next page when it has
    /// the last one.
    pub fn page_time(machine: &Machine, connections: u32, answers: usize) -> Result<Duration> {
        let mut guest = Self::start("http", machine)?;
        guest.port.read_exact(&mut [0])?;
        let request = |connection: u32| {
            let length = u32::try_from(HTTP_REQUEST.len()).unwrap_or(0);
            let header = [length.to_le_bytes(), connection.to_le_bytes()].concat();
            [&header, HTTP_REQUEST].concat()
        };
        let start = Instant::now();
        let first: Vec<u8> = (0..connections).flat_map(request).collect();
        guest.port.write_all(&first)?;
        let mut reader = BufReader::with_capacity(256 * 1024, guest.port.try_clone()?);
        let mut answer = Vec::new();
        for _ in 0..answers {
            let mut header = [0; 8];
            reader.read_exact(&mut header)?;
            let [a, b, c, d, connection @ ..] = header;
            answer.resize(u32::from_le_bytes([a, b, c, d]) as usize, 0);
            reader.read_exact(&mut answer)?;
            guest
                .port
                .write_all(&request(u32::from_le_bytes(connection)))?;
        }
        Ok(start.elapsed())
    }

    fn read_result(&mut self) -> Result<String> {
        loop {
            let mut line = String::new();
            ensure!(self.console.read_line(&mut line)? > 0, "QEMU ended");
            if let Some(result) = line.trim().strip_prefix("bench: ") {
                return Ok(result.to_owned());
            }
        }
    }
}

/// Returns the program of the baselines, to be run in a guest of vmcell.
pub fn guest_program() -> Result<Vec<u8>> {
    std::fs::read(env!("BENCH_GUEST")).context("the guest's program was not built")
}

/// QEMU's options for the virtio-serial link.
const PORT: &[&str] = &[
    "-device",
    "virtio-serial-device,max_ports=2",
    "-device",
    "virtserialport,chardev=port,nr=1,name=bench",
];

/// QEMU's options for the vsock link.
const VSOCK: &[&str] = &["-device", "vhost-user-vsock-device,chardev=port"];

/// The process that implements a vsock device.
struct Vsock {
    program: Child,
    /// Accepts the guest's connection.
    ready: UnixListener,
    folder: tempfile::TempDir,
}

impl Drop for Vsock {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

impl Vsock {
    fn start(program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let ready = UnixListener::bind(folder.path().join("vsock_1025"))?;
        let program = Command::new(program)
            .arg("--socket")
            .arg(folder.path().join("vhost"))
            .arg("--uds-path")
            .arg(folder.path().join("vsock"))
            .stdin(Stdio::null())
            .spawn()
            .context("vhost-device-vsock does not start")?;
        Ok(Self {
            program,
            ready,
            folder,
        })
    }

    /// Connects to its vhost-user socket, for QEMU.
    fn connect(&mut self) -> Result<UnixStream> {
        let begun = Instant::now();
        loop {
            match UnixStream::connect(self.folder.path().join("vhost")) {
                Err(_) if begun.elapsed() < GUEST_TIMEOUT => std::thread::yield_now(),
                connected => return Ok(connected?),
            }
        }
    }
}

fn mapping(parent_fd: OwnedFd, child_fd: i32) -> FdMapping {
    FdMapping {
        parent_fd,
        child_fd,
    }
}

/// Creates an initramfs with the guest's program as `/init`, by cpio(1).
fn initramfs() -> Result<tempfile::NamedTempFile> {
    let folder = tempfile::tempdir()?;
    std::fs::copy(env!("BENCH_GUEST"), folder.path().join("init"))?;
    let archive = tempfile::NamedTempFile::new()?;
    let mut cpio = Command::new("cpio")
        .args(["--create", "--format=newc", "--quiet"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(archive.reopen()?)
        .spawn()
        .context("cpio does not start")?;
    cpio.stdin.take().context("no pipe")?.write_all(b"init\n")?;
    ensure!(cpio.wait()?.success(), "cpio failed");
    Ok(archive)
}

/// Returns how long it takes to receive [`FLOOD_BYTES`] bytes, from the first ones on.
fn receive_flood(port: &mut UnixStream) -> Result<Duration> {
    let mut buffer = vec![0; 256 * 1024];
    let mut received = port.read(&mut buffer)?;
    let start = Instant::now();
    while received < FLOOD_BYTES {
        match port.read(&mut buffer)? {
            0 => bail!("the guest has ended"),
            count => received += count,
        }
    }
    Ok(start.elapsed())
}
