use std::{
    collections::HashMap,
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use vmcell_wire::{
    Attach, Attached, Capabilities, Channel, Decoder, Event, Exit, FailureKind, Hello, Item,
    Outcome, PackedStringsBuf, Peer, Position, Request, Resume, Selector, Stage, Start, Stdin,
    StreamId, encode,
};

use super::{Listed, Reply, Spec, TerminalSnapshot};

/// How long to wait for a reply; longer means that something is broken.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

/// How much input a stream accepts before it grants more credit.
const INPUT_WINDOW: usize = 256 * 1024;

pub(crate) struct Host {
    socket: UnixStream,
    decoder: Decoder,
    pub(crate) window: u32,
    /// What the agent has announced.
    pub(crate) capabilities: Capabilities,
    next: StreamId,
    /// All replies so far.
    log: Vec<Reply>,
    /// The data received on each channel.
    pub(crate) seen: HashMap<(StreamId, Channel), Vec<u8>>,
    /// The texts of failures.
    pub(crate) failures: HashMap<StreamId, String>,
    pub(crate) credit_automatically: bool,
    pub(crate) acknowledge_automatically: bool,
}

impl Host {
    pub(crate) fn new(socket: UnixStream) -> Self {
        socket.set_read_timeout(Some(REPLY_TIMEOUT)).unwrap();
        socket.set_write_timeout(Some(REPLY_TIMEOUT)).unwrap();
        Self {
            socket,
            decoder: Decoder::new(Peer::Guest),
            window: 0,
            capabilities: Capabilities::NONE,
            next: StreamId::new(1).unwrap(),
            log: Vec::new(),
            seen: HashMap::new(),
            failures: HashMap::new(),
            credit_automatically: true,
            acknowledge_automatically: true,
        }
    }

    /// Sends a hello with the size of this host's windows.
    pub(crate) fn say_hello(&mut self, window: u32) {
        self.window = window;
        self.send(|out| encode::hello(out, &Hello::new("test", window, [0; 16])).unwrap());
    }

    pub(crate) fn send(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        write(&mut bytes);
        match self.socket.write_all(&bytes) {
            // The agent has closed the link; the next read reports that.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ) => {}
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
        self.start(&Spec::new(argv))
    }

    pub(crate) fn exec_in(&mut self, argv: &[&str], cwd: &str, stdin: Stdin) -> StreamId {
        self.start(&Spec::new(argv).with(|spec| {
            spec.cwd = cwd.into();
            spec.start.stdin = stdin;
        }))
    }

    pub(crate) fn start(&mut self, spec: &Spec) -> StreamId {
        fn request(start: Start<'_>) -> Request<'_> {
            Request::Start(start)
        }
        self.open_with(spec, request)
    }

    /// Opens a stream with a request that starts something.
    pub(crate) fn open_with(
        &mut self,
        spec: &Spec,
        request: impl for<'a> FnOnce(Start<'a>) -> Request<'a>,
    ) -> StreamId {
        let (mut argv, mut env) = (PackedStringsBuf::new(), PackedStringsBuf::new());
        assert!(spec.argv.iter().all(|argument| argv.push(argument)));
        assert!(spec.env.iter().all(|variable| env.push(variable)));
        self.open(&request(Start {
            argv: argv.as_packed(),
            env: env.as_packed(),
            rlimits: spec.rlimits.as_rlimits(),
            tag: &spec.tag,
            user: &spec.user,
            cwd: spec.cwd.as_bytes(),
            ..spec.start
        }))
    }

    /// Starts a background process and returns its id and pid.
    pub(crate) fn spawn(&mut self, spec: &Spec) -> (u32, u32) {
        let stream = self.start(spec);
        match self.outcome(stream) {
            Reply::Spawned(_, id, pid) => (id, pid),
            other => panic!("not spawned: {other:?}"),
        }
    }

    /// Watches both outputs from these offsets on.
    pub(crate) fn attach(&mut self, process: Selector<'_>, stdout: u64, stderr: u64) -> StreamId {
        let window = self.window;
        let position = |offset| Some(Position { offset, window });
        self.open(&Request::Attach(Attach {
            process,
            stdout: position(stdout),
            stderr: position(stderr),
            stdin: false,
        }))
    }

    pub(crate) fn resume(&mut self, ticket: u64, stdout: u64, stderr: u64) -> StreamId {
        let window = self.window;
        self.open(&Request::Resume(Resume {
            ticket,
            stdout: Position {
                offset: stdout,
                window,
            },
            stderr: Position {
                offset: stderr,
                window,
            },
        }))
    }

    /// Returns the first reply that `wanted` accepts, received already or
    /// later.
    pub(crate) fn first(&mut self, wanted: impl Fn(&Reply) -> bool) -> Reply {
        if !self.log.iter().any(&wanted) {
            self.until(&wanted);
        }
        self.log.iter().find(|reply| wanted(reply)).unwrap().clone()
    }

    /// Forgets all replies so far.
    pub(crate) fn forget(&mut self) {
        self.log.clear();
    }

    /// Returns whether this reply was received.
    pub(crate) fn has_reply(&self, reply: &Reply) -> bool {
        self.log.contains(reply)
    }

    /// Returns whether a reply was received that `wanted` accepts.
    pub(crate) fn any_reply(&self, wanted: impl Fn(&Reply) -> bool) -> bool {
        self.log.iter().any(wanted)
    }

    /// Returns the gaps and data of a stream, in order.
    pub(crate) fn replies_on(&self, stream: StreamId) -> impl Iterator<Item = &Reply> {
        self.log.iter().filter(
            move |reply| matches!(reply, Reply::Gap(id, ..) | Reply::Data(id, ..) if *id == stream),
        )
    }

    /// Waits until a stream is closed, and returns how.
    pub(crate) fn outcome(&mut self, stream: StreamId) -> Reply {
        self.first(|reply| reply.closes(stream))
    }

    /// Sends a request and waits for its outcome.
    pub(crate) fn ask(&mut self, request: &Request<'_>) -> Reply {
        let stream = self.open(request);
        self.outcome(stream)
    }

    /// Sends a request that must fail, and returns how it did.
    pub(crate) fn refused(&mut self, request: &Request<'_>) -> (FailureKind, Stage) {
        match self.ask(request) {
            Reply::Failed(_, kind, _, stage) => (kind, stage),
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Starts a process that must fail to start, and returns how it did.
    pub(crate) fn start_refused(&mut self, spec: &Spec) -> (FailureKind, Stage) {
        let stream = self.start(spec);
        match self.outcome(stream) {
            Reply::Failed(_, kind, _, stage) => (kind, stage),
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Waits for the event that reports where a stream is attached.
    pub(crate) fn attached(&mut self, stream: StreamId) -> Attached {
        let about_it = |reply: &Reply| matches!(reply, Reply::Attached(id, _) if *id == stream);
        match self.first(|reply| about_it(reply) || reply.closes(stream)) {
            Reply::Attached(_, attached) => attached,
            other => panic!("not attached: {other:?}"),
        }
    }

    /// Starts a process that is not resumed when this link is lost. When it has
    /// ended, the agent has cleaned up everything of the link.
    pub(crate) fn start_canary(&mut self) -> u32 {
        let canary = self.start(&Spec::new(&["sleep", "1000"]));
        self.until(|reply| matches!(reply, Reply::Started(stream, ..) if *stream == canary))
            .into_iter()
            .find_map(|reply| match reply {
                Reply::Started(stream, _, pid) if stream == canary => Some(pid),
                _ => None,
            })
            .unwrap()
    }

    pub(crate) fn list(&mut self, after: u32) -> (Vec<Listed>, bool) {
        self.list_by(&Request::List { after })
    }

    /// Returns the reply to a request for a list.
    pub(crate) fn list_by(&mut self, request: &Request<'_>) -> (Vec<Listed>, bool) {
        let stream = self.open(request);
        let all = self.until(|reply| reply.closes(stream));
        let mut more = None;
        let mut listed = Vec::new();
        for reply in all {
            match reply {
                Reply::Listed(id, entry) if id == stream => listed.push(entry),
                Reply::EndOfList(id, value) if id == stream => more = Some(value),
                _ => {}
            }
        }
        (listed, more.unwrap())
    }

    /// Runs a process to its end and returns its exit status and standard
    /// output.
    pub(crate) fn run(&mut self, spec: &Spec) -> (Exit, String) {
        let stream = self.start(spec);
        let exit = self.exit(stream);
        let text = String::from_utf8_lossy(self.output(stream, Channel::Stdout)).into_owned();
        (exit, text)
    }

    /// Waits until `count` bytes of standard output were received on a stream.
    pub(crate) fn until_bytes(&mut self, stream: StreamId, count: usize) {
        while self.output(stream, Channel::Stdout).len() < count {
            self.until(|reply| matches!(reply, Reply::Data(id, ..) if *id == stream));
        }
    }

    pub(crate) fn write_stdin(&mut self, stream: StreamId, bytes: &[u8]) {
        self.send(|out| {
            let header = encode::data_header(stream, Channel::Stdin, bytes.len()).unwrap();
            out.extend_from_slice(&header);
            out.extend_from_slice(bytes);
        });
    }

    /// Writes all bytes to a stream, as credit allows, and then its end.
    pub(crate) fn feed(&mut self, stream: StreamId, bytes: &[u8]) {
        self.type_all(stream, bytes);
        self.send(|out| encode::end(out, stream, Channel::Stdin));
    }

    /// Writes all bytes to a stream, as credit allows. Nothing may have been
    /// written to it before.
    pub(crate) fn type_all(&mut self, stream: StreamId, mut bytes: &[u8]) {
        let window = self.log.iter().find_map(|reply| match reply {
            Reply::Attached(id, attached) if *id == stream => attached.stdin,
            _ => None,
        });
        let mut credit = window.map_or(INPUT_WINDOW, |stdin| stdin.window as usize);
        let mut counted = self.log.len();
        while !bytes.is_empty() {
            for reply in self.log.iter().skip(counted) {
                match reply {
                    Reply::Credit(id, more) if *id == stream => credit += *more as usize,
                    reply if reply.closes(stream) => return,
                    _ => {}
                }
            }
            counted = self.log.len();
            let (now, later) = bytes.split_at(bytes.len().min(credit).min(64 * 1024));
            if now.is_empty() {
                self.until(|reply| {
                    reply.closes(stream) || matches!(reply, Reply::Credit(id, _) if *id == stream)
                });
                continue;
            }
            self.write_stdin(stream, now);
            credit -= now.len();
            bytes = later;
        }
    }

    pub(crate) fn cancel(&mut self, stream: StreamId) {
        self.send(|out| encode::cancel(out, stream));
    }

    pub(crate) fn grant(&mut self, stream: StreamId, channel: Channel, bytes: u32) {
        self.send(|out| encode::credit(out, stream, channel, bytes));
    }

    /// Reads until a reply arrives that `wanted` accepts, and returns all
    /// replies up to then.
    pub(crate) fn until(&mut self, wanted: impl Fn(&Reply) -> bool) -> Vec<Reply> {
        let mut all = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        let began = Instant::now();
        loop {
            assert!(
                began.elapsed() < REPLY_TIMEOUT * 3,
                "no such reply; the last was {:?}",
                all.last()
            );
            let count = match self.socket.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
                Err(error) => panic!("no more replies after {all:?}: {error}"),
            };
            if count == 0 {
                all.push(Reply::Disconnected);
                assert!(wanted(&Reply::Disconnected), "disconnected: {all:?}");
                return all;
            }
            let before = all.len();
            let mut input = &buffer[..count];
            let mut answers = Vec::new();
            while let Some(item) = self.decoder.decode(&mut input).unwrap() {
                let reply = match item {
                    Item::Hello(hello) => {
                        self.capabilities = hello.capabilities;
                        Reply::Hello
                    }
                    Item::Event { stream, event, .. } => match event {
                        Event::Started { id, pid } => Reply::Started(stream, id, pid),
                        Event::Connected => Reply::Connected(stream),
                        Event::Attached(attached) => Reply::Attached(stream, attached),
                        Event::Gap { output, bytes } => Reply::Gap(stream, output, bytes),
                        Event::Service(state) => Reply::ListedService(stream, state.into()),
                        Event::Listed(entry) => Reply::Listed(
                            stream,
                            Listed {
                                id: entry.id,
                                tag: entry.tag.into(),
                                argv: entry.argv.iter().map(|a| a.to_bytes().to_vec()).collect(),
                                uid: entry.uid,
                                mode: entry.mode,
                                stdout: (entry.stdout.start, entry.stdout.end),
                                exit: entry.exit,
                            },
                        ),
                        other => panic!("unexpected {other:?}"),
                    },
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
                        Reply::Data(stream, channel, bytes.len())
                    }
                    Item::End { stream, channel } => Reply::End(stream, channel),
                    Item::Credit { stream, bytes, .. } => Reply::Credit(stream, bytes),
                    Item::Close {
                        stream, outcome, ..
                    } => {
                        if self.acknowledge_automatically {
                            encode::ack(&mut answers, stream);
                        }
                        match outcome {
                            Outcome::Exited(exit) => Reply::Exited(stream, exit),
                            Outcome::Failed(failure) => {
                                self.failures.insert(stream, failure.text.into());
                                Reply::Failed(stream, failure.kind, failure.errno, failure.stage)
                            }
                            Outcome::Pong => Reply::Pong(stream),
                            Outcome::DiskClean => Reply::PoweringOff,
                            Outcome::Spawned { id, pid } => Reply::Spawned(stream, id, pid),
                            Outcome::Done => Reply::Done(stream),
                            Outcome::EndOfList { more } => Reply::EndOfList(stream, more),
                            Outcome::Terminal(state) => {
                                Reply::Terminal(stream, TerminalSnapshot::new(state, false))
                            }
                            Outcome::TerminalRead(state) => {
                                Reply::Terminal(stream, TerminalSnapshot::new(state, true))
                            }
                            Outcome::Service(state) => Reply::Service(stream, state.into()),
                            other => panic!("unexpected {other:?}"),
                        }
                    }
                    other => panic!("unexpected {other:?}"),
                };
                all.push(reply);
            }
            if !answers.is_empty() {
                self.send(|out| out.extend_from_slice(&answers));
            }
            self.log.extend_from_slice(&all[before..]);
            if all[before..].iter().any(&wanted) {
                return all;
            }
        }
    }

    /// Waits for the end of a process.
    pub(crate) fn exit(&mut self, stream: StreamId) -> Exit {
        match self.outcome(stream) {
            Reply::Exited(_, exit) => exit,
            other => panic!("not an exit: {other:?}"),
        }
    }

    pub(crate) fn output(&self, stream: StreamId, channel: Channel) -> &[u8] {
        self.seen.get(&(stream, channel)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn close(self) {
        drop(self.socket);
    }
}
