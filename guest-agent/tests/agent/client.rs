//! An agent as an ordinary program, and a host that speaks to it by hand.

use std::{
    collections::HashMap,
    io::{ErrorKind, Read, Write},
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    process::{Child, Command, Stdio},
    time::Duration,
};

use vmcell_wire::{
    Cause, Channel, Decoder, Event, Exec, Exit, Hello, Item, Outcome, PackedBuf, Peer, Request,
    Stdin, StreamId, encode,
};

/// Nothing here takes this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct RunningAgent {
    pub(crate) child: Child,
    path: std::path::PathBuf,
}

impl RunningAgent {
    pub(crate) fn start() -> Self {
        let unique = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let path = std::env::temp_dir().join(format!(
            "vmcell-agent-test-{}-{}",
            std::process::id(),
            unique.as_nanos()
        ));
        let listener = UnixListener::bind(&path).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_vmcell-agent"))
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .spawn()
            .unwrap();
        Self { child, path }
    }

    /// A link that has not said hello.
    pub(crate) fn connect_silently(&self) -> Host {
        let socket = UnixStream::connect(&self.path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Host {
            socket,
            decoder: Decoder::new(Peer::Guest),
            window: 0,
            next: StreamId::new(1).unwrap(),
            seen: HashMap::new(),
            credit_automatically: true,
        }
    }

    pub(crate) fn connect(&self) -> Host {
        self.connect_with_window(64 * 1024)
    }

    pub(crate) fn connect_with_window(&self, window: u32) -> Host {
        let mut host = self.connect_silently();
        host.window = window;
        host.send(|out| encode::hello(out, &Hello::new("test", window, [0; 16])).unwrap());
        host.until(|said| matches!(said, Said::Hello));
        host
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Something the agent said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Hello,
    Started(StreamId, u32),
    Data(StreamId, Channel, usize),
    End(StreamId, Channel),
    Credit(StreamId, u32),
    Exited(StreamId, Exit),
    Failed(StreamId, vmcell_wire::FailureKind, u16, vmcell_wire::Stage),
    Pong(StreamId),
    PoweringOff,
    HungUp,
}

pub(crate) struct Host {
    socket: UnixStream,
    decoder: Decoder,
    window: u32,
    next: StreamId,
    /// What came on each channel.
    pub(crate) seen: HashMap<(StreamId, Channel), Vec<u8>>,
    pub(crate) credit_automatically: bool,
}

impl Host {
    pub(crate) fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        write(&mut bytes);
        match self.socket.write_all(&bytes) {
            // The agent has hung up on us; reading will tell.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            outcome => outcome.unwrap(),
        }
    }

    pub(crate) fn open(&mut self, request: &Request<'_>) -> StreamId {
        let stream = self.next;
        self.next = stream.next();
        self.send(|out| encode::open(out, stream, request).unwrap());
        stream
    }

    pub(crate) fn exec(&mut self, argv: &[&str]) -> StreamId {
        self.exec_in(argv, "", Stdin::Empty)
    }

    pub(crate) fn exec_in(&mut self, argv: &[&str], cwd: &str, stdin: Stdin) -> StreamId {
        let mut packed = PackedBuf::new();
        assert!(argv.iter().all(|argument| packed.push(argument.as_bytes())));
        let mut env = PackedBuf::new();
        assert!(env.push(b"PATH=/usr/bin:/bin"));
        self.open(&Request::Exec(Exec {
            argv: packed.as_packed(),
            env: env.as_packed(),
            cwd: cwd.as_bytes(),
            stdin,
        }))
    }

    pub(crate) fn write_stdin(&mut self, stream: StreamId, bytes: &[u8]) {
        self.send(|out| {
            let header = encode::data_header(stream, Channel::Stdin, bytes.len()).unwrap();
            out.extend_from_slice(&header);
            out.extend_from_slice(bytes);
        });
    }

    pub(crate) fn grant(&mut self, stream: StreamId, channel: Channel, bytes: u32) {
        self.send(|out| encode::credit(out, stream, channel, bytes));
    }

    /// Reads until something is said that `wanted` accepts, and answers
    /// everything that was said up to then.
    pub(crate) fn until(&mut self, wanted: impl Fn(&Said) -> bool) -> Vec<Said> {
        let mut all = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = match self.socket.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
                Err(error) => panic!("the agent says no more after {all:?}: {error}"),
            };
            if count == 0 {
                all.push(Said::HungUp);
                assert!(wanted(&Said::HungUp), "the agent hung up after {all:?}");
                return all;
            }
            let before = all.len();
            let mut input = &buffer[..count];
            let mut answers = Vec::new();
            while let Some(item) = self.decoder.decode(&mut input).unwrap() {
                let said = match item {
                    Item::Hello(_) => Said::Hello,
                    Item::Event {
                        stream,
                        event: Event::Started { pid },
                    } => Said::Started(stream, pid),
                    Item::Data {
                        stream,
                        channel,
                        bytes,
                    } => {
                        self.seen
                            .entry((stream, channel))
                            .or_default()
                            .extend(bytes);
                        if self.credit_automatically {
                            let count = u32::try_from(bytes.len()).unwrap();
                            encode::credit(&mut answers, stream, channel, count);
                        }
                        Said::Data(stream, channel, bytes.len())
                    }
                    Item::End { stream, channel } => Said::End(stream, channel),
                    Item::Credit { stream, bytes, .. } => Said::Credit(stream, bytes),
                    Item::Close { stream, outcome } => match outcome {
                        Outcome::Exited(exit) => Said::Exited(stream, exit),
                        Outcome::Failed(failure) => {
                            Said::Failed(stream, failure.kind, failure.errno, failure.stage)
                        }
                        Outcome::Pong => Said::Pong(stream),
                        Outcome::PoweringOff => Said::PoweringOff,
                        other => panic!("unexpected {other:?}"),
                    },
                    other => panic!("unexpected {other:?}"),
                };
                all.push(said);
            }
            if !answers.is_empty() {
                self.socket.write_all(&answers).unwrap();
            }
            if all[before..].iter().any(&wanted) {
                return all;
            }
        }
    }

    /// Waits for the end of a process.
    pub(crate) fn exit(&mut self, stream: StreamId) -> Exit {
        let all = self.until(|said| matches!(said, Said::Exited(id, _) if *id == stream));
        all.iter()
            .find_map(|said| match said {
                Said::Exited(id, exit) if *id == stream => Some(*exit),
                _ => None,
            })
            .unwrap()
    }

    pub(crate) fn output(&self, stream: StreamId, channel: Channel) -> &[u8] {
        self.seen.get(&(stream, channel)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn close(self) {
        drop(self.socket);
    }
}

pub(crate) fn code(exit: &Exit) -> u8 {
    match exit.cause {
        Cause::Code(code) => code,
        other => panic!("ended by {other:?}"),
    }
}

/// Waits until a process is gone or a zombie, by its pidfd and not by polling.
pub(crate) fn wait_until_gone(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let flags = rustix::process::PidfdFlags::empty();
    let Ok(process) = rustix::process::pidfd_open(pid, flags) else {
        return;
    };
    let mut wanted = [rustix::event::PollFd::new(
        &process,
        rustix::event::PollFlags::IN,
    )];
    let patience = rustix::time::Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    let ready = rustix::event::poll(&mut wanted, Some(&patience)).unwrap();
    assert_eq!(ready, 1, "process {pid:?} lives on");
}
