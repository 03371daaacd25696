//! Requests for snapshots: a program that can give its machine a new identity, on
//! a directory in place of the cgroups, and on real ones.

use std::{
    cell::RefCell,
    env, fs,
    io::{ErrorKind, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::exit,
    rc::Rc,
    thread::sleep,
    time::Duration,
};

use tempfile::TempDir;
use vmcell_agent::{
    Agent, Errno, IdentityControl, NewIdentity, PowerControl, Progress, stdin_copy,
};
use vmcell_wire::{
    Capabilities, Channel, Decoder, ExitCause, Hello, Item, Outcome, Peer, Renew, Request,
    Selector, StreamId, encode, reset::ResetKey,
};

use crate::{
    client::{Reply, RunningAgent, Spec, code},
    program::{Mode, wait},
    running_program::{RunningProgram, command},
};

const OLD: [u8; 16] = [1; 16];
const NEW: [u8; 16] = [2; 16];

fn renew(key: ResetKey) -> Request<'static> {
    Request::Renew(Renew {
        boot_id: NEW,
        reset_key: key.to_bytes(),
        seed: [3; 32],
        wall_time_ns: 4,
        hostname: "renewed",
    })
}

/// A seed, a time, a host name and a boot id.
pub(crate) type Taken = ([u8; 32], u64, String, [u8; 16]);

/// Records the identities that it is to take, and takes them or fails.
pub(crate) struct Recorder {
    pub(crate) taken: Rc<RefCell<Vec<Taken>>>,
    pub(crate) result: Result<(), Errno>,
}

impl IdentityControl for Recorder {
    fn renew(&mut self, new: &NewIdentity<'_>) -> Result<(), Errno> {
        let hostname = new.hostname.to_owned();
        let taken = (new.seed, new.wall_time_ns, hostname, new.boot_id);
        self.taken.borrow_mut().push(taken);
        self.result
    }
}

/// A directory with the file by which processes are frozen, as if they were.
pub(crate) fn frozen_directory() -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("vmcell")).unwrap();
    fs::write(freeze_file(&directory), "1").unwrap();
    directory
}

fn freeze_file(directory: &TempDir) -> PathBuf {
    directory.path().join("vmcell/cgroup.freeze")
}

/// The host's end of a port.
pub(crate) struct Port {
    socket: UnixStream,
    decoder: Decoder,
}

impl Port {
    fn new() -> (Self, OwnedFd) {
        let (socket, theirs) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = Self {
            socket,
            decoder: Decoder::new(Peer::Guest),
        };
        (port, OwnedFd::from(theirs))
    }

    /// Sends bytes, and returns what the agent answers at once.
    fn send(&mut self, agent: &mut Agent, bytes: &[u8]) -> Vec<u8> {
        self.socket.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        for _ in 0..4 {
            assert_eq!(agent.turn().unwrap(), Progress::Serving);
            match self.socket.read_to_end(&mut answer) {
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                Ok(_) => panic!("the port was closed"),
            }
        }
        answer
    }

    /// Sends a hello, and returns the boot id and the capabilities of the answer.
    pub(crate) fn greet(&mut self, agent: &mut Agent) -> ([u8; 16], Capabilities) {
        let mut bytes = Vec::new();
        encode::hello(&mut bytes, &Hello::new("test", 1000, [0; 16])).unwrap();
        let answer = self.send(agent, &bytes);
        match self.decoder.decode(&mut &answer[..]).unwrap() {
            Some(Item::Hello(hello)) => (hello.boot_id, hello.capabilities),
            other => panic!("not a hello: {other:?}"),
        }
    }

    fn is_reset(&mut self, agent: &mut Agent, key: ResetKey) -> bool {
        let nonce = [9; 16];
        let answer = self.send(agent, &key.reset(nonce));
        assert!(answer.is_empty() || answer == nonce, "{answer:?}");
        self.decoder = Decoder::new(Peer::Guest);
        !answer.is_empty()
    }

    /// Sends a request, and checks its outcome.
    pub(crate) fn ask(
        &mut self,
        agent: &mut Agent,
        request: &Request<'_>,
        is_it: fn(&Outcome<'_>) -> bool,
    ) {
        let mut bytes = Vec::new();
        let stream = StreamId::new(1).unwrap();
        encode::open(&mut bytes, stream, request).unwrap();
        encode::ack(&mut bytes, stream);
        let answer = self.send(agent, &bytes);
        match self.decoder.decode(&mut &answer[..]).unwrap() {
            Some(Item::Close { outcome, .. }) => assert!(is_it(&outcome), "{outcome:?}"),
            other => panic!("not closed: {other:?}"),
        }
    }
}

pub(crate) fn agent_with_ports(
    directory: &TempDir,
    control: Recorder,
    key: ResetKey,
) -> (Agent, [Port; 2]) {
    let ((one, first), (other, second)) = (Port::new(), Port::new());
    let agent = Agent::builder()
        .boot_id(OLD)
        .cgroups(directory.path().to_str().unwrap())
        .identity_control(control)
        .port(first, key.to_bytes())
        .port(second, key.to_bytes())
        .build();
    (agent.unwrap(), [one, other])
}

pub(crate) fn a_new_identity_is_that_of_the_hellos_and_resets_that_follow() {
    let (old_key, new_key) = (ResetKey::new([5; 16]), ResetKey::new([6; 16]));
    let directory = frozen_directory();
    let taken = Rc::default();
    let control = Recorder {
        taken: Rc::clone(&taken),
        result: Ok(()),
    };
    let (mut agent, [mut one, mut other]) = agent_with_ports(&directory, control, old_key);
    let (boot_id, capabilities) = one.greet(&mut agent);
    assert_eq!(boot_id, OLD);
    assert!(capabilities.contains(Capabilities::SNAPSHOTS));
    assert!(one.is_reset(&mut agent, old_key));
    assert_eq!(one.greet(&mut agent).0, OLD);
    one.ask(&mut agent, &renew(new_key), |it| *it == Outcome::Done);
    assert_eq!(*taken.borrow(), [([3; 32], 4, "renewed".to_owned(), NEW)]);
    assert_eq!(fs::read(freeze_file(&directory)).unwrap(), b"0");
    // The session goes on.
    one.ask(&mut agent, &Request::Ping, |it| *it == Outcome::Pong);
    for port in [&mut one, &mut other] {
        assert!(!port.is_reset(&mut agent, old_key));
        assert!(port.is_reset(&mut agent, new_key));
        assert_eq!(port.greet(&mut agent).0, NEW);
    }
}

pub(crate) fn an_identity_that_cannot_be_taken_changes_nothing() {
    let (old_key, new_key) = (ResetKey::new([5; 16]), ResetKey::new([6; 16]));
    let directory = frozen_directory();
    let control = Recorder {
        taken: Rc::default(),
        result: Err(Errno::PERM),
    };
    let (mut agent, [mut port, _other]) = agent_with_ports(&directory, control, old_key);
    port.greet(&mut agent);
    let failed = |it: &Outcome<'_>| matches!(it, Outcome::Failed(failure) if failure.errno == 1);
    port.ask(&mut agent, &renew(new_key), failed);
    assert_eq!(fs::read(freeze_file(&directory)).unwrap(), b"1");
    assert!(port.is_reset(&mut agent, old_key));
    assert_eq!(port.greet(&mut agent).0, OLD);
    port.ask(&mut agent, &Request::Thaw, |it| *it == Outcome::Done);
    assert_eq!(fs::read(freeze_file(&directory)).unwrap(), b"0");
}

/// The environment variable with the directory for cgroups.
const CGROUPS: &str = "VMCELL_TEST_CGROUPS";

/// Embeds an agent with cgroups until a power-off.
pub(crate) fn run() -> ! {
    struct EndOfProgram;
    impl PowerControl for EndOfProgram {}
    let directory = env::var(CGROUPS).unwrap();
    let control = Recorder {
        taken: Rc::default(),
        result: Ok(()),
    };
    let agent = Agent::builder()
        .listener(stdin_copy().unwrap())
        .cgroups(&directory)
        .identity_control(control)
        .power_control(EndOfProgram)
        .build();
    let mut agent = agent.unwrap();
    while agent.turn().unwrap() == Progress::Serving {
        wait(&agent, None, None);
    }
    exit(0)
}

/// A cgroup for the agent of a test.
struct TestCgroup(PathBuf);

impl TestCgroup {
    /// Returns `None` if this program may not create cgroups.
    fn create() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut mounts = mounts.lines().map(|line| line.split(' '));
        let mount = mounts.find_map(|mut fields| {
            let target = fields.nth(1)?;
            (fields.next()? == "cgroup2").then_some(target)
        })?;
        let number = std::process::id();
        let path = Path::new(mount).join(format!("vmcell-test-{number}"));
        fs::create_dir(&path).ok()?;
        let cgroup = Self(path);
        cgroup.0.join("cgroup.kill").exists().then_some(cgroup)
    }

    fn is_frozen(&self) -> bool {
        let events = fs::read_to_string(self.0.join("vmcell/cgroup.events"));
        events.unwrap().contains("frozen 1")
    }
}

impl Drop for TestCgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        // Killed processes may still be exiting.
        for _ in 0..100 {
            remove(&self.0);
            if !self.0.exists() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

/// Removes a cgroup with those below it, as far as they are empty.
fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

/// Starts the program with cgroups, or says why it cannot.
fn start(test: &str) -> Option<(RunningProgram, TestCgroup)> {
    let Some(cgroup) = TestCgroup::create() else {
        println!("skipped: {test}: this program may not create cgroups");
        return None;
    };
    let mut command = command(Mode::Snapshots, "HUP");
    let agent = RunningAgent::run(command.env(CGROUPS, &cgroup.0));
    let host = agent.connect();
    Some((RunningProgram { agent, host }, cgroup))
}

pub(crate) fn frozen_processes_stand_still_until_they_are_thawed() {
    let Some((mut program, cgroup)) = start("freezing processes") else {
        return;
    };
    let host = &mut program.host;
    assert!(host.capabilities.contains(Capabilities::SNAPSHOTS));
    // The cgroup of all processes does not exist yet.
    assert!(matches!(host.ask(&Request::Freeze), Reply::Done(_)));
    assert!(cgroup.is_frozen());
    assert!(matches!(host.ask(&Request::Thaw), Reply::Done(_)));
    assert!(!cgroup.is_frozen());
    // Processes with descendants, one of which is busy.
    let script = "(while :; do :; done) & while :; do echo x; sleep 0.01; done";
    let spec = Spec::shell(script);
    let busy = host.start(&spec);
    host.until_bytes(busy, 10);
    // All requests that wait are answered.
    let waiting = [(); 3].map(|()| host.open(&Request::Freeze));
    for stream in waiting {
        assert_eq!(host.outcome(stream), Reply::Done(stream));
    }
    assert!(cgroup.is_frozen());
    assert!(matches!(host.ask(&Request::Freeze), Reply::Done(_)));
    host.ask(&Request::Ping);
    let before = host.output(busy, Channel::Stdout).len();
    // What is started meanwhile waits, and the agent does not wait for it.
    let late = host.start(&Spec::shell("echo late; exit 3"));
    sleep(Duration::from_millis(200));
    host.ask(&Request::Ping);
    assert_eq!(host.replies_on(late).count(), 0);
    assert_eq!(host.output(busy, Channel::Stdout).len(), before);
    // A frozen process can be killed.
    let process = Selector::Tag(&spec.tag);
    host.ask(&Request::Kill { process });
    assert_eq!(host.exit(busy).cause, ExitCause::Killed);
    assert!(cgroup.is_frozen());
    assert!(matches!(
        host.ask(&renew(ResetKey::new(NEW))),
        Reply::Done(_)
    ));
    assert_eq!(code(&host.exit(late)), 3);
    assert_eq!(host.output(late, Channel::Stdout), b"late\n");
    assert!(!cgroup.is_frozen());
    let (exit, output) = host.run(&Spec::new(&["echo", "another"]));
    assert_eq!((code(&exit), output.as_str()), (0, "another\n"));
    // A link that is lost changes nothing.
    assert!(matches!(host.ask(&Request::Freeze), Reply::Done(_)));
    program.host = program.agent.connect();
    program.host.ask(&Request::Ping);
    assert!(cgroup.is_frozen());
}

pub(crate) fn a_power_off_lets_frozen_processes_react_to_sigterm() {
    let Some((mut program, cgroup)) = start("a power-off of frozen processes") else {
        return;
    };
    let host = &mut program.host;
    let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let stream = host.start(&Spec::shell(script));
    host.until_bytes(stream, b"ready\n".len());
    assert!(matches!(host.ask(&Request::Freeze), Reply::Done(_)));
    assert!(cgroup.is_frozen());
    host.open(&Request::PowerOff { grace_ms: 10_000 });
    assert_eq!(code(&host.exit(stream)), 7);
    assert_eq!(host.output(stream, Channel::Stdout), b"ready\nbye\n");
    program.agent.child.wait().unwrap();
}
