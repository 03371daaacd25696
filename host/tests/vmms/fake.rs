//! A fake VMM without a guest: it reads its command line or config file, checks
//! what it is given, and speaks for the agent.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Read as _, Write as _},
    os::unix::{
        fs::FileExt as _,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use serde_json::Value;
use vmcell_wire::{
    Capabilities, Decoder, Hello, Item, Outcome, Peer, Request,
    boot::{BOOT_FILE, Boot, BootLink},
    encode,
};

/// Environment variable: the arguments of the fake. Without it the fake is an
/// empty test.
pub(crate) const ARGUMENTS: &str = "VMCELL_FAKE_VMM_ARGUMENTS";

/// Environment variable: the root folder of the fake, as in a jail.
pub(crate) const ROOT: &str = "VMCELL_FAKE_VMM_ROOT";

/// The settings of a VM.
struct VmSettings {
    kernel: PathBuf,
    initramfs: PathBuf,
    disk: PathBuf,
    vsock: PathBuf,
    kernel_arguments: String,
    vcpus: u64,
    memory_mib: u64,
    api: Option<PathBuf>,
}

#[test]
fn a_vmm() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else {
        return;
    };
    let settings = match arguments.contains("--config-file") {
        true => VmSettings::from_config(&arguments),
        false => VmSettings::from_command_line(&arguments),
    };
    println!("the guest's console: {}", settings.kernel_arguments);
    assert_eq!((settings.vcpus, settings.memory_mib), (2, 128));
    assert!(settings.kernel_arguments.contains("console=ttyS0"));
    settings.check_files();
    // Like the real one, opens it before the VM boots.
    if let Some(api) = &settings.api {
        serve_api(UnixListener::bind(api).unwrap());
    }
    let archive = std::fs::read(&settings.initramfs).unwrap();
    serve(
        &settings.vsock,
        &Boot::from_file(boot_file(&archive)).unwrap(),
    );
}

impl VmSettings {
    fn from_config(arguments: &str) -> Self {
        let words: Vec<_> = arguments.split(' ').collect();
        let root = std::env::var(ROOT).unwrap_or_default();
        let in_root = |path: &str| PathBuf::from(format!("{root}{path}"));
        let option = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            Some(in_root(words[at + 1]))
        };
        let api = option("--api-sock");
        // With neither option it would open a socket that all VMs share.
        assert_eq!(api.is_none(), words.contains(&"--no-api"), "{arguments}");
        let config = option("--config-file").unwrap();
        let config: Value = serde_json::from_reader(File::open(config).unwrap()).unwrap();
        let text = |pointer: &str| config.pointer(pointer).unwrap().as_str().unwrap();
        let number = |pointer: &str| config.pointer(pointer).unwrap().as_u64().unwrap();
        assert_eq!(number("/vsock/guest_cid"), 3);
        Self {
            kernel: in_root(text("/boot-source/kernel_image_path")),
            initramfs: in_root(text("/boot-source/initrd_path")),
            disk: in_root(text("/drives/0/path_on_host")),
            vsock: in_root(text("/vsock/uds_path")),
            kernel_arguments: text("/boot-source/boot_args").to_owned(),
            vcpus: number("/machine-config/vcpu_count"),
            memory_mib: number("/machine-config/mem_size_mib"),
            api,
        }
    }

    fn from_command_line(arguments: &str) -> Self {
        let option = |name: &str| {
            let rest = arguments.split(&format!("{name} ")).nth(1).unwrap();
            rest.split(" --").next().unwrap()
        };
        let value = |name: &str, key: &str| {
            let mut pairs = option(name).split(',');
            pairs.find_map(|pair| pair.strip_prefix(key)).unwrap()
        };
        let has_api = arguments.contains("--api-socket");
        let api = has_api.then(|| value("--api-socket", "path=").into());
        assert_eq!((option("--serial"), option("--console")), ("tty", "off"));
        assert_eq!(value("--vsock", "cid="), "3");
        Self {
            kernel: option("--kernel").into(),
            initramfs: option("--initramfs").into(),
            disk: value("--disk", "path=").into(),
            vsock: value("--vsock", "socket=").into(),
            kernel_arguments: option("--cmdline").to_owned(),
            vcpus: value("--cpus", "boot=").parse().unwrap(),
            memory_mib: value("--memory", "size=")
                .trim_end_matches('M')
                .parse()
                .unwrap(),
            api,
        }
    }

    /// Checks that the kernel is an ELF file and the disk a writable ext4 file
    /// system.
    fn check_files(&self) {
        let mut magic = [0; 4];
        File::open(&self.kernel)
            .unwrap()
            .read_exact(&mut magic)
            .unwrap();
        assert_eq!(&magic, b"\x7fELF");
        let mut options = OpenOptions::new();
        let disk = options.read(true).write(true).open(&self.disk).unwrap();
        let mut magic = [0; 2];
        disk.read_exact_at(&mut magic, 1024 + 0x38).unwrap();
        assert_eq!(magic, [0x53, 0xef]);
        disk.write_all_at(b"written", 0).unwrap();
    }
}

/// Returns the boot file, which is the last file of an archive.
fn boot_file(archive: &[u8]) -> &[u8] {
    let name = format!("{}\0", BOOT_FILE.trim_start_matches('/'));
    let at = archive
        .windows(name.len())
        .rposition(|word| word == name.as_bytes());
    let name_at = at.unwrap();
    let header = &archive[name_at - 110..name_at];
    let size = std::str::from_utf8(&header[54..62]).unwrap();
    let size = usize::from_str_radix(size, 16).unwrap();
    let contents = (name_at + name.len()).next_multiple_of(4);
    &archive[contents..contents + size]
}

/// The API's reply to a query of the VM's state.
pub(crate) const STATE: &str = r#"{"id":"a-fake","state":"Running"}"#;

/// Serves the API of the VMM, which knows the state of the VM, and pauses and resumes it
/// as Firecracker and as Cloud Hypervisor do. What the VM should not be told twice is
/// refused.
fn serve_api(listener: UnixListener) {
    std::thread::spawn(move || {
        let mut is_paused = false;
        for program in listener.incoming() {
            let mut program = program.unwrap();
            let (line, body) = read_request(&mut BufReader::new(program.try_clone().unwrap()));
            let pauses = match (line.as_str(), body.as_str()) {
                ("GET / HTTP/1.1", "") => {
                    let length = STATE.len();
                    let reply = format!("HTTP/1.1 200 \r\nContent-Length: {length}\r\n\r\n{STATE}");
                    program.write_all(reply.as_bytes()).unwrap();
                    continue;
                }
                ("PATCH /vm HTTP/1.1", r#"{"state":"Paused"}"#)
                | ("PUT /api/v1/vm.pause HTTP/1.1", "") => true,
                ("PATCH /vm HTTP/1.1", r#"{"state":"Resumed"}"#)
                | ("PUT /api/v1/vm.resume HTTP/1.1", "") => false,
                other => panic!("{other:?}"),
            };
            let reply = match pauses == is_paused {
                true => "400 Bad Request\r\nContent-Length: 5\r\n\r\ntwice",
                false => "204 No Content\r\n\r\n",
            };
            is_paused = pauses;
            write!(program, "HTTP/1.1 {reply}").unwrap();
        }
    });
}

/// Reads the first line and the body of a request.
fn read_request(reader: &mut impl BufRead) -> (String, String) {
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (
        first.trim_end().to_owned(),
        String::from_utf8(body).unwrap(),
    )
}

/// Serves the vsock of the VMM, and the agent behind it.
fn serve(vsock: &Path, boot: &Boot<'_>) {
    let BootLink::Vsock { port, ready_port } = boot.link else {
        panic!("{:?}", boot.link);
    };
    let listener = UnixListener::bind(vsock).unwrap();
    let ready = format!("{}_{ready_port}", vsock.display());
    drop(UnixStream::connect(ready).unwrap());
    loop {
        let (host, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(host.try_clone().unwrap());
        let mut request = String::new();
        lines.read_line(&mut request).unwrap();
        assert_eq!(request, format!("CONNECT {port}\n"));
        assert!(
            lines.buffer().is_empty(),
            "the host did not wait for the answer"
        );
        (&host).write_all(b"OK 1073741824\n").unwrap();
        if answer(host, boot) == ConnectionEnd::PoweredOff {
            return;
        }
    }
}

#[derive(PartialEq, Eq)]
enum ConnectionEnd {
    HungUp,
    PoweredOff,
}

/// Answers as an agent without any features.
fn answer(mut host: UnixStream, boot: &Boot<'_>) -> ConnectionEnd {
    let mut decoder = Decoder::new(Peer::Host);
    let mut buffer = [0; 4096];
    let mut answers = Vec::new();
    loop {
        let count = host.read(&mut buffer).unwrap_or(0);
        if count == 0 {
            return ConnectionEnd::HungUp;
        }
        let mut input = &buffer[..count];
        while let Some(item) = decoder.decode(&mut input).unwrap() {
            match item {
                Item::Hello(_) => {
                    let mut hello = Hello::new("a fake agent", 65_536, boot.boot_id);
                    // A newer generation, but without one capability.
                    hello.generation = 7;
                    let all_but_one = !Capabilities::SERVICES.bits();
                    hello.capabilities = Capabilities::from_bits(all_but_one);
                    encode::hello(&mut answers, &hello).unwrap();
                }
                Item::Open {
                    stream,
                    request: Request::Ping,
                } => encode::close(&mut answers, stream, &Outcome::Pong).unwrap(),
                Item::Open {
                    stream,
                    request: Request::SetClock { .. },
                } => encode::close(&mut answers, stream, &Outcome::Done).unwrap(),
                Item::Open {
                    stream,
                    request: Request::PowerOff { .. },
                } => {
                    encode::close(&mut answers, stream, &Outcome::DiskClean).unwrap();
                    host.write_all(&answers).unwrap();
                    return ConnectionEnd::PoweredOff;
                }
                _ => {}
            }
        }
        host.write_all(&answers).unwrap();
        answers.clear();
    }
}
