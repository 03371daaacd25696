//! The VMM that was taken over: this test program, started again.

use std::{
    fs::{self, File, OpenOptions},
    io,
    net::{TcpStream, UdpSocket},
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt as _,
        unix::{
            net::{SocketAddr, UnixStream},
            process::CommandExt as _,
        },
    },
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use nix::{
    sched::{CloneFlags, unshare},
    sys::ptrace,
    unistd::Pid as NixPid,
};
use rustix::{
    fs::{MemfdFlags, memfd_create},
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen},
    process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit},
};
use serde_json::Value;

/// The argument that precedes the description of the targets.
pub(crate) const TARGETS: &str = "targets=";

type Attack = (&'static str, fn(&Value) -> io::Result<()>);

/// In this order, because the last ones leave little of the process.
const ATTACKS: &[Attack] = &[
    ("read /etc/passwd", |_| fs::read("/etc/passwd").map(drop)),
    ("list the home folder", |it| {
        fs::read_dir(path(it, "home")).map(drop)
    }),
    ("read the home folder", |it| {
        fs::read(path(it, "key")).map(drop)
    }),
    ("read another VM's layer", |it| {
        File::open(path(it, "layer")).map(drop)
    }),
    ("write another VM's layer", |it| {
        OpenOptions::new()
            .append(true)
            .open(path(it, "layer"))
            .map(drop)
    }),
    ("connect to another VM's socket", |it| {
        UnixStream::connect(path(it, "socket")).map(drop)
    }),
    ("connect to an abstract socket", |it| {
        let address = SocketAddr::from_abstract_name(text(it, "abstract"))?;
        UnixStream::connect_addr(&address).map(drop)
    }),
    ("connect by TCP", |it| {
        TcpStream::connect(("127.0.0.1", port(it, "tcp"))).map(drop)
    }),
    ("send by UDP", |it| {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket
            .send_to(b"secret", ("127.0.0.1", port(it, "udp")))
            .map(drop)
    }),
    ("write a file", |it| {
        File::create(path(it, "home").join("new")).map(drop)
    }),
    ("debug a process", |it| {
        let victim = NixPid::from_raw(number(it, "victim"));
        ptrace::seize(victim, ptrace::Options::empty())?;
        Ok(ptrace::detach(victim, None).or(Ok::<(), nix::Error>(()))?)
    }),
    ("read the memory of a process", |it| {
        File::open(format!("/proc/{}/mem", number(it, "victim"))).map(drop)
    }),
    ("signal a process", |it| {
        let victim = Pid::from_raw(number(it, "victim")).ok_or(io::ErrorKind::NotFound)?;
        Ok(kill_process(victim, Signal::CONT)?)
    }),
    ("mount", |_| {
        // It is attached nowhere, so nobody sees it where this succeeds.
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let flags = FsMountFlags::FSMOUNT_CLOEXEC;
        fsmount(&context, flags, MountAttrFlags::empty())?;
        Ok(())
    }),
    ("unshare", |_| match unshare(CloneFlags::CLONE_NEWUSER) {
        // This process has threads; one that has none would be in another namespace now.
        Ok(()) | Err(nix::Error::EINVAL) => Ok(()),
        Err(errno) => Err(errno.into()),
    }),
    ("make a file in memory", |_| {
        memfd_create("attack", MemfdFlags::CLOEXEC)?;
        Ok(())
    }),
    ("make a process", |_| {
        Command::new("/proc/self/exe")
            .arg("--list")
            .output()
            .map(drop)
    }),
    ("make 1,000 threads", |_| many_threads()),
    ("take 100 GiB of memory", |_| much_memory()),
    ("open 10,000 files", |_| many_files()),
    ("execute a program", |_| {
        Err(Command::new("/bin/true").exec())
    }),
    ("execute a program among the libraries", |it| {
        Err(Command::new(path(it, "program")).exec())
    }),
];

/// The names of all attacks.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ATTACKS.iter().map(|(name, _)| *name)
}

/// Attacks if this program is the VMM: prints a line before and after each attack.
#[test]
fn attack() {
    let mut arguments = std::env::args();
    let Some(targets) = arguments.find_map(|word| Some(word.strip_prefix(TARGETS)?.to_owned()))
    else {
        return;
    };
    let targets = serde_json::from_str(&targets).unwrap();
    for (name, attack) in ATTACKS {
        println!("\nattack: {name}");
        match attack(&targets) {
            Ok(()) => println!("\nsucceeded: {name}"),
            Err(error) => println!("\nrefused: {name}: {error}"),
        }
    }
}

fn many_threads() -> io::Result<()> {
    let mut threads = Vec::new();
    let made = (0..1000).try_for_each(|_| {
        let thread = thread::Builder::new().stack_size(64 * 1024);
        threads.push(thread.spawn(|| thread::park_timeout(Duration::from_secs(60)))?);
        Ok(())
    });
    for thread in threads {
        thread.thread().unpark();
        let _ = thread.join();
    }
    made
}

fn much_memory() -> io::Result<()> {
    const GIB: usize = 1 << 30;
    let mut memory = Vec::new();
    for _ in 0..100 {
        let mut piece: Vec<u8> = Vec::new();
        piece.try_reserve_exact(GIB).map_err(io::Error::other)?;
        memory.push(piece);
    }
    Ok(())
}

fn many_files() -> io::Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, limit)?;
    let (one, _other) = UnixStream::pair()?;
    let one = OwnedFd::from(one);
    let files: io::Result<Vec<_>> = (0..10_000).map(|_| one.try_clone()).collect();
    files.map(drop)
}

fn path<'a>(targets: &'a Value, name: &str) -> &'a Path {
    Path::new(text(targets, name))
}

fn text<'a>(targets: &'a Value, name: &str) -> &'a str {
    targets[name].as_str().unwrap()
}

fn port(targets: &Value, name: &str) -> u16 {
    targets[name].as_u64().unwrap().try_into().unwrap()
}

fn number(targets: &Value, name: &str) -> i32 {
    targets[name].as_i64().unwrap().try_into().unwrap()
}
