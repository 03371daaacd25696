//! Programs that bind the socket names of VMs, or keep an owner from serving
//! its own.

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            net::{SocketAddr, UnixStream},
            process::CommandExt as _,
        },
    },
    process::{Child, ChildStdout, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
    },
    process::{Resource, Rlimit, geteuid, getrlimit, setrlimit},
};
use tokio::time::timeout;
use vmcell::{Error, Vm, VmStatus};

use crate::{builder, start};

/// Environment variable: what this program does when it is started again.
const TASK: &str = "VMCELL_TEST_TASK";

/// Far more than it takes: a failure here hangs for ever.
const TIMEOUT: Duration = Duration::from_secs(60);

/// This program started again, with one test to run. It is killed when this is
/// dropped.
struct Helper {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Helper {
    fn start(test: &str, task: &str, uid: u32) -> Self {
        // Through a path that every user can access.
        let mut child = std::process::Command::new("/proc/self/exe")
            .args(["--exact", test, "--nocapture"])
            .env(TASK, task)
            .uid(uid)
            .gid(uid)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Waits until it has printed this line.
    fn says(&mut self, wanted: &str) {
        let mut lines = self.output.by_ref().lines();
        assert!(
            lines.any(|line| line.unwrap().ends_with(wanted)),
            "{wanted}"
        );
    }

    fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    /// Returns the processor time that it has used: proc_pid_stat(5), in
    /// hundredths of a second.
    fn processor_time(&self) -> Duration {
        let stat = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(stat).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        let fields: Vec<_> = fields.split_whitespace().collect();
        let ticks: u64 = [11, 12]
            .map(|index| fields[index].parse::<u64>().unwrap())
            .iter()
            .sum();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn new_socket() -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
}

/// Binds socket names, each with a full backlog. Child process of a test: does
/// nothing when run alone.
#[test]
fn squat() {
    let Ok(names) = env::var(TASK) else {
        return;
    };
    let mut sockets = Vec::new();
    for name in names.split(',') {
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        let listener = new_socket();
        bind(&listener, &address).unwrap();
        listen(&listener, 0).unwrap();
        sockets.push(listener);
        loop {
            let client = new_socket();
            match connect(&client, &address) {
                Ok(()) => sockets.push(client),
                Err(errno) => {
                    assert_eq!(errno, Errno::AGAIN);
                    break;
                }
            }
        }
    }
    println!("squatting");
    // Until the parent process is gone.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Returns ids of VMs that do not exist.
fn names(beginning: &str, count: usize) -> Vec<String> {
    let process = std::process::id();
    let names = (0..count).map(|number| format!("{beginning}-{process}-{number}"));
    names.collect()
}

fn squatter(ids: &[String], uid: u32) -> Helper {
    let owner = geteuid().as_raw();
    let names: Vec<_> = ids
        .iter()
        .map(|id| format!("vmcell/{owner}/{id}"))
        .collect();
    let mut squatter = Helper::start("squatters::squat", &names.join(","), uid);
    squatter.says("squatting");
    squatter
}

#[tokio::test]
async fn sockets_of_a_stranger_cost_nothing() {
    if !geteuid().is_root() {
        eprintln!("not tried: only root can pose as somebody else");
        return;
    }
    let squatted = names("squatted", 200);
    let _squatter = squatter(&squatted, 65534);

    // A squatted id can still be used.
    let id = &squatted[0];
    let vm = builder().id(id).start().await.unwrap();
    let taken = builder().id(id).start().await.unwrap_err();
    assert!(matches!(taken, Error::IdTaken { .. }), "{taken:?}");
    let list = timeout(TIMEOUT, Vm::list()).await.unwrap().unwrap();
    let mut listed = list.iter().filter(|info| squatted.contains(&info.id));
    let info = listed.next().unwrap();
    assert_eq!((&info.id, info.owner_pid), (id, Some(std::process::id())));
    assert!(info.details().is_some(), "{info:?}");
    assert_eq!(listed.next(), None);

    let client = timeout(TIMEOUT, Vm::attach(id)).await.unwrap().unwrap();
    assert!(client.exec(["true"]).await.unwrap().success());
    let error = timeout(TIMEOUT, Vm::attach(&squatted[1])).await.unwrap();
    let error = error.unwrap_err();
    assert!(matches!(error, Error::NoSuchVm { .. }), "{error:?}");
    vm.kill().await.unwrap();
    let error = timeout(TIMEOUT, Vm::attach(id)).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::NoSuchVm { .. }), "{error:?}");
}

/// Such a program cannot be distinguished from one that owns VMs and is
/// stopped.
#[tokio::test]
async fn sockets_of_our_own_user_that_nobody_serves_hold_up_nobody_else() {
    let squatted = names("unserved", 200);
    let _squatter = squatter(&squatted, geteuid().as_raw());
    let vm = start().await;
    let list = timeout(TIMEOUT, Vm::list()).await.unwrap().unwrap();
    let info = list.iter().find(|info| info.id == vm.id()).unwrap();
    assert!(info.details().is_some(), "{info:?}");
    let unserved = list.iter().filter(|info| squatted.contains(&info.id));
    let is_silent = |info: &&vmcell::VmInfo| info.status == VmStatus::NotAnswering;
    assert_eq!(unserved.filter(is_silent).count(), squatted.len());
    let error = timeout(TIMEOUT, Vm::attach(&squatted[0])).await.unwrap();
    let error = error.unwrap_err();
    assert_eq!(error.code(), "owner-not-answering");
    let error = builder().id(&squatted[0]).start().await.unwrap_err();
    assert!(matches!(error, Error::IdTaken { .. }), "{error:?}");
}

/// Owns a VM and has no free descriptors. Child process of a test: does nothing
/// when run alone.
#[tokio::test]
async fn own_without_descriptors() {
    let Ok(id) = env::var(TASK) else {
        return;
    };
    let vm = builder().id(id).start().await.unwrap();
    let limit = Rlimit {
        current: Some(200),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    println!("starved");
    let wait = || tokio::task::spawn_blocking(|| std::io::stdin().lines().next().unwrap().unwrap());
    assert_eq!(wait().await.unwrap(), "free them");
    drop(taken);
    println!("fed");
    assert_eq!(wait().await.unwrap(), "end");
    vm.kill().await.unwrap();
}

#[test]
fn an_owner_without_descriptors_waits_for_some_without_spinning() {
    let id = &names("starved", 1)[0];
    let uid = geteuid().as_raw();
    let mut owner = Helper::start("squatters::own_without_descriptors", id, uid);
    owner.says("starved");
    let address = SocketAddr::from_abstract_name(format!("vmcell/{uid}/{id}")).unwrap();
    let mut client = UnixStream::connect_addr(&address).unwrap();

    // A busy loop would use a good part of this time on any machine.
    const OBSERVATION_TIME: Duration = Duration::from_secs(2);
    let (began, used) = (Instant::now(), owner.processor_time());
    std::thread::sleep(OBSERVATION_TIME);
    let used = owner.processor_time() - used;
    assert!(used < began.elapsed() / 20, "{used:?}");

    // A waiting client is served when there is a free descriptor again.
    owner.tell("free them");
    owner.says("fed");
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    client.read_exact(&mut [0; 2]).unwrap();
    owner.tell("end");
    owner.says("ok");
}
