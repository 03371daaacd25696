//! Helpers to start and query services.

use std::sync::atomic::{AtomicU64, Ordering};

use vmcell_wire::{
    Channel, PackedStringsBuf, Request, Selector, StreamId,
    service::{
        Http, LivenessProbe, LogStart, Probe as WireProbe, ReadLog, ReadinessProbe, Restart,
        RestartPolicy, ServiceRequest, Spec as Wire, StartService, StopPolicy, WaitFor,
        log_pattern::{Assertion, ByteClass, Instruction, LogPatternBuf},
    },
};

use crate::client::{Host, Reply, ServiceState, Spec};

/// The probe of a service.
#[derive(Clone, Debug)]
pub(super) enum Probe {
    File(String),
    Tcp(u16),
    Unix(String),
    Http {
        port: u16,
        path: String,
        body: String,
    },
    Command(String),
    Program(String),
    Log(LogPatternBuf),
}

impl Probe {
    /// Succeeds when a line of the log contains this text.
    pub(super) fn log(text: &str) -> Self {
        Self::log_program(text.bytes().map(Instruction::Byte), &[])
    }

    /// Succeeds when a line of the log is this text.
    pub(super) fn log_line(text: &str) -> Self {
        let text = text.bytes().map(Instruction::Byte);
        Self::log_program([START].into_iter().chain(text).chain([END]), &[])
    }

    /// Succeeds when a line of the log is this text and a number.
    pub(super) fn log_line_with_number(text: &str) -> Self {
        let mut digits = ByteClass::default();
        digits.add(b'0'..=b'9');
        let index = u16::try_from(text.len() + 1).unwrap();
        let number = [Instruction::Class(0), Instruction::Split(index), END];
        let text = text.bytes().map(Instruction::Byte);
        Self::log_program([START].into_iter().chain(text).chain(number), &[digits])
    }

    fn log_program(instructions: impl Iterator<Item = Instruction>, classes: &[ByteClass]) -> Self {
        let instructions: Vec<_> = instructions.chain([Instruction::Match]).collect();
        Self::Log(LogPatternBuf::new(&instructions, classes).unwrap())
    }
}

const START: Instruction = Instruction::Assert(Assertion::Start);
const END: Instruction = Instruction::Assert(Assertion::End);

/// The configuration of a service. By default it is never restarted, and probes
/// are quick.
pub(super) struct Config {
    pub(super) program: Spec,
    pub(super) restart: Restart,
    pub(super) stop: StopPolicy,
    pub(super) ready: Option<Probe>,
    pub(super) ready_ms: u32,
    pub(super) delay_ms: u32,
    pub(super) alive: Option<Probe>,
    pub(super) failures: u32,
    pub(super) interval_ms: u32,
    pub(super) attempt_ms: u32,
    pub(super) needs: Vec<String>,
    pub(super) ticket: u64,
    pub(super) if_same: bool,
}

static LAST_TICKET: AtomicU64 = AtomicU64::new(0);

/// Longer than anything here takes.
pub(super) const LONG_MS: u32 = 60_000;

impl Config {
    pub(super) fn new(script: &str) -> Self {
        Self {
            program: Spec::shell(script),
            restart: Restart {
                policy: RestartPolicy::Never,
                pause_ms: 20,
                max_pause_ms: 160,
            },
            stop: StopPolicy {
                signal: 15,
                grace_ms: LONG_MS,
            },
            ready: None,
            ready_ms: LONG_MS,
            delay_ms: 0,
            alive: None,
            failures: 2,
            interval_ms: 20,
            attempt_ms: LONG_MS,
            needs: Vec::new(),
            ticket: LAST_TICKET.fetch_add(1, Ordering::Relaxed) + 1,
            if_same: false,
        }
    }

    /// Returns one that does nothing until it is stopped.
    pub(super) fn idle() -> Self {
        Self::new("exec sleep 1000")
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn ready(self, probe: Probe) -> Self {
        self.with(|c| c.ready = Some(probe))
    }

    pub(super) fn alive(self, probe: Probe) -> Self {
        self.with(|c| c.alive = Some(probe))
    }

    pub(super) fn policy(self, policy: RestartPolicy) -> Self {
        self.with(|c| c.restart.policy = policy)
    }

    pub(super) fn needs(self, needs: &[&str]) -> Self {
        self.with(|c| c.needs = needs.iter().copied().map(String::from).collect())
    }

    fn probe<'a>(probe: &'a Probe, argv: &'a mut PackedStringsBuf) -> WireProbe<'a> {
        match probe {
            Probe::File(path) => WireProbe::File {
                path: path.as_bytes(),
            },
            Probe::Tcp(port) => WireProbe::Tcp { port: *port },
            Probe::Unix(path) => WireProbe::Unix {
                path: path.as_bytes(),
            },
            Probe::Http { port, path, body } => WireProbe::Http(Http {
                port: *port,
                path,
                min_status: 200,
                max_status: 399,
                body: body.as_bytes(),
            }),
            Probe::Command(script) => {
                let all = ["sh", "-c", script];
                assert!(all.iter().all(|text| argv.push(text.as_bytes())));
                WireProbe::Command {
                    argv: argv.as_packed(),
                }
            }
            Probe::Program(path) => {
                assert!(argv.push(path.as_bytes()));
                WireProbe::Command {
                    argv: argv.as_packed(),
                }
            }
            Probe::Log(pattern) => WireProbe::Log {
                pattern: pattern.as_pattern(),
            },
        }
    }

    /// Returns its encoded spec.
    pub(super) fn spec(&self) -> Vec<u8> {
        let mut lists = [const { PackedStringsBuf::new() }; 5];
        let [argv, env, needs, ready_argv, alive_argv] = &mut lists;
        let program = &self.program;
        assert!(program.argv.iter().all(|text| argv.push(text)));
        assert!(program.env.iter().all(|text| env.push(text)));
        assert!(self.needs.iter().all(|need| needs.push(need.as_bytes())));
        let start = vmcell_wire::Start {
            ticket: 0,
            argv: argv.as_packed(),
            env: env.as_packed(),
            rlimits: program.rlimits.as_rlimits(),
            user: &program.user,
            cwd: program.cwd.as_bytes(),
            ..program.start
        };
        let spec = Wire {
            start,
            restart: self.restart,
            stop: self.stop,
            ready: self.ready.as_ref().map(|probe| ReadinessProbe {
                probe: Self::probe(probe, ready_argv),
                delay_ms: self.delay_ms,
                interval_ms: self.interval_ms,
                attempt_ms: self.attempt_ms,
                timeout_ms: self.ready_ms,
            }),
            alive: self.alive.as_ref().map(|probe| LivenessProbe {
                probe: Self::probe(probe, alive_argv),
                interval_ms: self.interval_ms,
                attempt_ms: self.attempt_ms,
                failures: self.failures,
            }),
            needs: needs.as_packed(),
        };
        spec.to_bytes().unwrap()
    }
}

/// Sends a request about services.
pub(super) fn ask(host: &mut Host, request: ServiceRequest<'_>) -> Reply {
    host.ask(&Request::Service(request))
}

fn state(reply: Reply) -> ServiceState {
    match reply {
        Reply::Service(_, serving) => serving,
        other => panic!("not a state: {other:?}"),
    }
}

pub(super) fn try_start(host: &mut Host, name: &str, service: &Config) -> (StreamId, Reply) {
    let stream = host.open(&Request::Service(ServiceRequest::Start(StartService {
        name,
        ticket: service.ticket,
        if_same: service.if_same,
        spec: &service.spec(),
    })));
    (stream, host.outcome(stream))
}

pub(super) fn start(host: &mut Host, name: &str, service: &Config) -> ServiceState {
    state(try_start(host, name, service).1)
}

/// Starts a service that must be rejected. Returns the kind and the text of the
/// failure.
pub(super) fn refused(
    host: &mut Host,
    name: &str,
    service: &Config,
) -> (vmcell_wire::FailureKind, String) {
    match try_start(host, name, service) {
        (stream, Reply::Failed(_, kind, ..)) => (kind, host.failures[&stream].clone()),
        (_, other) => panic!("not refused: {other:?}"),
    }
}

pub(super) fn open_wait(host: &mut Host, name: &str, until: WaitFor) -> StreamId {
    host.open(&Request::Service(ServiceRequest::Wait { name, until }))
}

/// Waits for a stream that returns the state of a service.
pub(super) fn outcome(host: &mut Host, stream: StreamId) -> ServiceState {
    state(host.outcome(stream))
}

pub(super) fn until_ready(host: &mut Host, name: &str) -> ServiceState {
    let stream = open_wait(host, name, WaitFor::Ready);
    outcome(host, stream)
}

pub(super) fn until_over(host: &mut Host, name: &str) -> ServiceState {
    let stream = open_wait(host, name, WaitFor::Ended);
    outcome(host, stream)
}

pub(super) fn look(host: &mut Host, name: &str) -> ServiceState {
    state(ask(host, ServiceRequest::GetState { name }))
}

pub(super) fn stop(host: &mut Host, name: &str) -> ServiceState {
    state(ask(host, ServiceRequest::Stop { name }))
}

pub(super) fn restart(host: &mut Host, name: &str) -> ServiceState {
    state(ask(host, ServiceRequest::Restart { name }))
}

/// Starts to read a log.
pub(super) fn open_log(host: &mut Host, name: &str, from: LogStart, follow: bool) -> StreamId {
    let window = host.window;
    host.open(&Request::Service(ServiceRequest::ReadLog(ReadLog {
        name,
        from,
        follow,
        window,
    })))
}

pub(super) fn text(host: &Host, stream: StreamId) -> String {
    String::from_utf8_lossy(host.output(stream, Channel::Stdout)).into_owned()
}

/// Returns the kept part of a log.
pub(super) fn log(host: &mut Host, name: &str, from: LogStart) -> String {
    let stream = open_log(host, name, from, false);
    outcome(host, stream);
    text(host, stream)
}

pub(super) const ALL: LogStart = LogStart::Offset(0);

/// Follows a log until a text was printed `times` times.
pub(super) fn until_printed(host: &mut Host, stream: StreamId, wanted: &str, times: usize) {
    while text(host, stream).matches(wanted).count() < times {
        host.until(|reply| {
            assert!(!reply.closes(stream), "{reply:?} before {wanted:?}");
            matches!(reply, Reply::Data(id, ..) if *id == stream)
        });
    }
}

/// Kills the process of a service, as any host could.
pub(super) fn kill(host: &mut Host, name: &str) -> Reply {
    let tag = format!("service:{name}");
    host.ask(&Request::Kill {
        process: Selector::Tag(&tag),
    })
}
