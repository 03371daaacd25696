//! The baseline of snapshots: plain QEMU, restored from the same files by as few commands
//! of its monitor as possible, without vmcell.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use command_fds::{CommandFdExt, FdMapping};
use serde_json::{Value, json};
use vmcell_wire::{
    CgroupLimits, Decoder, Hello, Item, PackedStringsBuf, Peer, ProcessMode, Request, Start, Stdin,
    StreamId, encode, reset::ResetKey,
};

use crate::baseline::command_line;

/// How long anything may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A template, and the command line of a QEMU that runs a VM of it.
pub struct BareTemplate {
    arguments: Vec<String>,
    folder: PathBuf,
    image: PathBuf,
    disk_size: u64,
    boot_id: [u8; 16],
    key: ResetKey,
}

/// A VM that was restored.
pub struct BareVm {
    qemu: Child,
    monitor: BufReader<UnixStream>,
    begun: Instant,
    /// From the start of QEMU to the hello of the agent.
    pub start: Duration,
    link: UnixStream,
    /// What the agent has sent after its hello.
    decoder: Decoder,
    _console: UnixStream,
}

impl Drop for BareVm {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl BareTemplate {
    /// Reads the manifest of a template, and the options of the QEMU that runs `vm`, a
    /// VM of it.
    pub fn of(vm: &vmcell::Vm, folder: &Path) -> Result<Self> {
        let words = command_line(&format!("vmcell-{}", vm.id()))?.1;
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(folder.join("manifest.json"))?)?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        let bytes = |value: &Value| -> Result<[u8; 16]> {
            let text = text(value)?;
            let digits = |at: usize| text.get(2 * at..2 * at + 2).unwrap_or_default();
            let mut bytes = [0; 16];
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = u8::from_str_radix(digits(at), 16)?;
            }
            Ok(bytes)
        };
        let guest = &manifest["guest"];
        Ok(Self {
            // The first one is the program, and the last one is empty.
            arguments: words[1..words.len() - 1].to_vec(),
            folder: folder.to_owned(),
            image: text(&manifest["image"]["path"])?.into(),
            disk_size: manifest["disk_size"].as_u64().context("no size")?,
            boot_id: bytes(&guest["boot_id"])?,
            key: ResetKey::new(bytes(&guest["reset_key"])?),
        })
    }

    /// Restores a VM, and waits until its agent has answered.
    pub fn start(&self) -> Result<BareVm> {
        let begun = Instant::now();
        let open = |name: &str| {
            Ok::<_, std::io::Error>(OwnedFd::from(File::open(self.folder.join(name))?))
        };
        let layer = tempfile::tempfile()?;
        vmcell::disk::image::write_empty_layer(&layer, self.disk_size, None)?;
        let memory = File::options()
            .read(true)
            .write(true)
            .open(self.folder.join("memory"))?;
        let (link, their_link) = UnixStream::pair()?;
        let (console, their_console) = UnixStream::pair()?;
        let (monitor, their_monitor) = UnixStream::pair()?;
        let descriptors = [
            their_link.into(),
            their_console.into(),
            their_monitor.into(),
            open("state")?,
            layer.into(),
            open("layer-0")?,
            File::open(&self.image)?.into(),
            memory.into(),
        ];
        let mappings = descriptors.into_iter().zip(3..);
        let mappings = mappings.map(|(parent_fd, child_fd)| FdMapping {
            parent_fd,
            child_fd,
        });
        let qemu = Command::new("qemu-system-x86_64")
            .args(&self.arguments)
            .fd_mappings(mappings.collect())?
            .stdin(Stdio::null())
            .spawn()
            .context("QEMU does not start")?;
        for socket in [&link, &monitor] {
            socket.set_read_timeout(Some(TIMEOUT))?;
        }
        let mut vm = BareVm {
            qemu,
            monitor: BufReader::new(monitor),
            begun,
            start: Duration::ZERO,
            link,
            decoder: Decoder::new(Peer::Guest),
            _console: console,
        };
        let capabilities = json!([
            { "capability": "events", "state": true },
            { "capability": "x-ignore-shared", "state": true },
        ]);
        vm.send(&json!({ "execute": "qmp_capabilities" }))?;
        vm.send(&json!({ "execute": "migrate-set-capabilities", "arguments": { "capabilities": capabilities } }))?;
        vm.send(&json!({ "execute": "migrate-incoming", "arguments": { "uri": "fd:6" } }))?;
        vm.wait_for(|line| line["event"] == "MIGRATION" && line["data"]["status"] == "completed")?;
        vm.send(&json!({ "execute": "cont" }))?;
        let nonce = *b"a nonce of sixty";
        let mut hello = self.key.reset(nonce).to_vec();
        encode::hello(&mut hello, &Hello::new("bench", 1 << 20, self.boot_id))?;
        vm.link.write_all(&hello)?;
        let mut received = Vec::new();
        let nonce_end = loop {
            let place = received.windows(16).position(|window| window == nonce);
            if let Some(place) = place {
                break place + 16;
            }
            vm.read(&mut received)?;
        };
        let mut rest = received.split_off(nonce_end);
        while !vm.decode(&rest, |item| matches!(item, Item::Hello(_)))? {
            rest.clear();
            vm.read(&mut rest)?;
        }
        vm.start = begun.elapsed();
        Ok(vm)
    }
}

impl BareVm {
    fn read(&mut self, into: &mut Vec<u8>) -> Result<()> {
        let mut buffer = [0; 4096];
        let count = self.link.read(&mut buffer)?;
        ensure!(count > 0, "QEMU ended");
        into.extend_from_slice(&buffer[..count]);
        Ok(())
    }

    /// Decodes bytes of the agent. Returns whether such an item is among them.
    fn decode(&mut self, mut bytes: &[u8], is_it: impl Fn(&Item<'_>) -> bool) -> Result<bool> {
        let mut found = false;
        while let Some(item) = self.decoder.decode(&mut bytes)? {
            found |= is_it(&item);
        }
        Ok(found)
    }

    /// Lets the processes run, and runs `/bin/true`. Returns the time from the start of
    /// QEMU to its exit.
    pub fn exec_time(mut self) -> Result<Duration> {
        let (thaw, start) = (StreamId::new(1)?, StreamId::new(2)?);
        let mut argv = PackedStringsBuf::new();
        ensure!(argv.push(b"/bin/true"));
        let mut frames = Vec::new();
        encode::open(&mut frames, thaw, &Request::Thaw)?;
        encode::open(
            &mut frames,
            start,
            &Request::Start(Start {
                ticket: 1,
                tag: "bare",
                argv: argv.as_packed(),
                env: Default::default(),
                default_env: true,
                cwd: b"",
                make_cwd: false,
                user: "",
                umask: None,
                nice: 0,
                rlimits: Default::default(),
                stdin: Stdin::Empty,
                mode: ProcessMode::Foreground,
                timeout_ms: 0,
                keep: 4096,
                limits: CgroupLimits::default(),
            }),
        )?;
        self.link.write_all(&frames)?;
        let mut received = Vec::new();
        loop {
            received.clear();
            self.read(&mut received)?;
            let is_exit =
                |item: &Item<'_>| matches!(item, Item::Close { stream, .. } if *stream == start);
            if self.decode(&received, is_exit)? {
                return Ok(self.begun.elapsed());
            }
        }
    }

    fn send(&mut self, command: &Value) -> Result<()> {
        Ok(self
            .monitor
            .get_mut()
            .write_all(format!("{command}\n").as_bytes())?)
    }

    fn wait_for(&mut self, is_it: impl Fn(&Value) -> bool) -> Result<()> {
        loop {
            let mut line = String::new();
            ensure!(self.monitor.read_line(&mut line)? > 0, "QEMU ended");
            let line: Value = serde_json::from_str(&line)?;
            if is_it(&line) {
                return Ok(());
            }
            if !line["error"].is_null() {
                bail!("{line}");
            }
        }
    }

    fn execute(&mut self, command: &Value) -> Result<()> {
        self.send(command)?;
        self.wait_for(|line| !line["return"].is_null())
    }

    /// Saves the VM into a file, and returns how long it stood still.
    pub fn snapshot_pause(&mut self, folder: &Path) -> Result<Duration> {
        let path = folder.join("bare");
        let mut file = File::create(&path)?;
        // What was sent before is answered first.
        self.execute(&json!({ "execute": "query-status" }))?;
        let parameters = json!({ "max-bandwidth": 1_u64 << 40 });
        self.execute(&json!({ "execute": "migrate-set-parameters", "arguments": parameters }))?;
        let socket = folder.join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&socket)?;
        let begun = Instant::now();
        self.execute(&json!({ "execute": "stop" }))?;
        let uri = format!("unix:{}", socket.display());
        self.send(&json!({ "execute": "migrate", "arguments": { "uri": uri } }))?;
        std::io::copy(&mut listener.accept()?.0, &mut file)?;
        self.wait_for(|line| {
            line["event"] == "MIGRATION" && line["data"]["status"] == "completed"
        })?;
        self.execute(&json!({ "execute": "cont" }))?;
        let pause = begun.elapsed();
        std::fs::remove_file(path)?;
        std::fs::remove_file(socket)?;
        Ok(pause)
    }
}
