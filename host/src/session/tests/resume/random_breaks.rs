//! Links that break at random moments: every byte arrives once.

use super::*;

/// A random step of a process and its link.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The process prints this many bytes.
    Printed(Channel, usize),
    /// The caller reads all that has arrived.
    Read,
    /// The link breaks.
    Dropped,
    /// Waits until the host has read everything.
    Settled,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let output = prop_oneof![3 => Just(Channel::Stdout), 1 => Just(Channel::Stderr)];
    let size = prop_oneof![1..100_usize, 1..20_000_usize, 1..600_000_usize];
    let step = prop_oneof![
        6 => (output, size).prop_map(|(channel, count)| Step::Printed(channel, count)),
        2 => Just(Step::Read),
        3 => Just(Step::Dropped),
        1 => Just(Step::Settled),
    ];
    prop::collection::vec(step, 1..25)
}

/// The agent's side of one output of a process.
#[derive(Debug)]
struct Printer {
    channel: Channel,
    /// All bytes of the output.
    bytes: Vec<u8>,
    sent: usize,
    window: usize,
    read: Vec<u8>,
}

impl Printer {
    fn new(channel: Channel) -> Self {
        let count = 1_500_000;
        let mut bytes = pattern(count);
        if channel == Channel::Stderr {
            bytes.reverse();
        }
        Self {
            channel,
            bytes,
            sent: 0,
            window: WINDOW as usize,
            read: Vec::new(),
        }
    }

    /// Returns frames with the next bytes, within the credit.
    fn print(&mut self, stream: StreamId, count: usize) -> Vec<u8> {
        let count = count.min(self.window).min(self.bytes.len() - self.sent);
        let bytes = &self.bytes[self.sent..self.sent + count];
        self.sent += count;
        self.window -= count;
        let mut frames = Vec::new();
        for part in bytes.chunks(MAX_PAYLOAD as usize) {
            frames.extend(data(stream, self.channel, part));
        }
        frames
    }

    fn resume_at(&mut self, position: Position) {
        let offset = usize::try_from(position.offset).unwrap();
        assert!(offset <= self.sent, "more arrived than was sent");
        self.sent = offset;
        self.window = position.window as usize;
    }
}

/// A process, its agent, and the reader of its outputs.
struct Scenario {
    session: Session,
    guest: Guest,
    stream: Stream,
    printers: [Printer; 2],
}

impl Scenario {
    async fn new() -> Self {
        let (session, mut guest) = connect_serial().await;
        let stream = open_started(&session, &mut guest).await;
        Self {
            session,
            guest,
            stream,
            printers: [Printer::new(Channel::Stdout), Printer::new(Channel::Stderr)],
        }
    }

    fn printer(&mut self, channel: Channel) -> &mut Printer {
        match channel {
            Channel::Stderr => &mut self.printers[1],
            _ => &mut self.printers[0],
        }
    }

    async fn apply(&mut self, step: Step) {
        let id = self.stream.id;
        match step {
            Step::Printed(channel, count) => {
                let bytes = self.printer(channel).print(id, count);
                self.guest.send(&bytes).await;
            }
            Step::Read => self.read(),
            Step::Settled => self.settle().await,
            Step::Dropped => {
                self.session.drop_link();
                self.guest.answer_reset(GUEST_WINDOW).await;
                let resume = self.guest.recv_resume(id).await;
                let [stdout, stderr] = &mut self.printers;
                stdout.resume_at(resume.stdout);
                stderr.resume_at(resume.stderr);
                let (stdout, stderr) = (resume.stdout.offset, resume.stderr.offset);
                self.guest.send(&attached(id, stdout, stderr, None)).await;
            }
        }
        for channel in [Channel::Stdout, Channel::Stderr] {
            let held = held(&self.stream, channel);
            assert!(held <= WINDOW.into(), "{held} bytes are held");
        }
    }

    fn read(&mut self) {
        for channel in [Channel::Stdout, Channel::Stderr] {
            loop {
                let event = {
                    let mut inner = self.stream.state.lock();
                    inner.take_output(&self.stream.shared, channel, usize::MAX)
                };
                match event {
                    Some(StreamEvent::Data(_, bytes)) => self.printer(channel).read.extend(bytes),
                    Some(other) => panic!("{other:?}"),
                    None => break,
                }
            }
        }
    }

    async fn settle(&mut self) {
        for received in settle_past(&self.session, &mut self.guest).await {
            match received {
                FromHost::Credit(_, channel, bytes) => {
                    self.printer(channel).window += bytes as usize;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Prints the rest and reads everything.
    async fn finish(mut self) {
        let id = self.stream.id;
        while self.printers.iter().any(|one| one.sent < one.bytes.len()) {
            for channel in [Channel::Stdout, Channel::Stderr] {
                let bytes = self.printer(channel).print(id, usize::MAX);
                self.guest.send(&bytes).await;
            }
            self.settle().await;
            self.read();
            self.settle().await;
        }
        self.read();
        self.guest.send(&ends(id)).await;
        let [stdout, stderr] = &self.printers;
        let exit = Exit {
            stderr_bytes: stderr.bytes.len() as u64,
            ..exit(stdout.bytes.len() as u64)
        };
        self.guest.send(&close(id, &Outcome::Exited(exit))).await;
        let end = self.stream.next().await;
        assert!(
            matches!(outcome_of(&end), Some(Outcome::Exited(_))),
            "{end:?}"
        );
        for one in &self.printers {
            assert!(one.read == one.bytes, "{:?} was changed", one.channel);
        }
    }
}

fn run(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        // The session is stuck if this does not end soon.
        let in_time = tokio::time::timeout(Duration::from_secs(60), future).await;
        assert!(in_time.is_ok(), "somebody waits forever");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_byte_comes_once_however_often_the_link_breaks(steps in steps()) {
        run(async {
            let mut scenario = Scenario::new().await;
            for step in steps {
                scenario.apply(step).await;
            }
            scenario.finish().await;
        });
    }

    #[test]
    fn every_byte_of_the_input_arrives_once_however_often_the_link_breaks(
        window in 1..2000_u32,
        // How much the agent reads, and how much of that it acknowledges after
        // the link breaks.
        steps in prop::collection::vec((1..3000_usize, any::<prop::sample::Index>()), 1..20),
    ) {
        const COUNT: usize = 20_000;
        run(async {
            let (session, mut guest) = connect_serial_with_window(window).await;
            let mut stream = open_started(&session, &mut guest).await;
            let (id, input) = (stream.id, stream.input());
            let write = tokio::spawn(async move {
                for part in pattern(COUNT).chunks(777) {
                    assert!(input.write(Bytes::copy_from_slice(part)).await);
                }
                input.end();
            });
            // The input of the process, and how much of it has been credited.
            let (mut taken, mut credited, mut ended) = (Vec::new(), 0, false);
            let mut floor = 0;
            let mut steps = steps.into_iter();
            while !ended {
                let (count, kept) = match steps.next() {
                    Some((count, kept)) => (count, Some(kept)),
                    None => (usize::MAX, None),
                };
                let before = taken.len();
                while taken.len() - before < count && !ended {
                    match guest.recv().await {
                        Some(FromHost::Data(_, bytes)) => taken.extend(bytes),
                        Some(FromHost::End(_)) => ended = true,
                        other => panic!("{other:?}"),
                    }
                    assert!(taken.len() - credited <= window as usize, "no credit for it");
                    if taken.len() - credited > window as usize / 2 {
                        let grant = taken.len() - credited;
                        guest.send(&credit(id, grant as u32)).await;
                        credited = taken.len();
                    }
                }
                if let Some(kept) = kept {
                    settle_past(&session, &mut guest).await;
                    session.drop_link();
                    guest.answer_reset(window).await;
                    guest.recv_resume(id).await;
                    let known = credited + kept.index(taken.len() - credited + 1);
                    // Bytes that it has acknowledged are not lost again.
                    let known = known.max(floor);
                    floor = known;
                    // The part that the process has not read yet. Credit for it
                    // comes later.
                    let held = kept.index(known - credited + 1);
                    taken.truncate(known);
                    credited = known - held;
                    ended = false;
                    let stdin = at(known as u64, window - held as u32);
                    guest.send(&attached(id, 0, 0, Some(stdin))).await;
                    if held > window as usize / 2 {
                        guest.send(&credit(id, held as u32)).await;
                        credited = known;
                    }
                }
            }
            write.await.unwrap();
            assert!(taken == pattern(COUNT), "{} bytes arrived", taken.len());
            finish(&mut stream, &mut guest, 0).await;
        });
    }
}
