//! What an agent announces and serves of its protocol: what it was compiled with,
//! less what its program does not allow.

use vmcell_wire::{
    Capabilities, Channel, FailureKind, Renew, Request, Selector, Stage, TrustStore, encode,
    files::{FileOperation, FileRequest},
    network::NetworkRequest,
    service::ServiceRequest,
    terminal::TerminalRequest,
};

use crate::{
    client::{Reply, Spec, code},
    program::Mode,
    running_program::RunningProgram,
};

const STAT: Request<'static> = Request::Files(FileRequest {
    root: b"/",
    operation: FileOperation::Stat {
        path: b"",
        follow: true,
        digest: false,
    },
});

const RENEW: Request<'static> = Request::Renew(Renew {
    boot_id: [1; 16],
    reset_key: [2; 16],
    seed: [3; 32],
    wall_time_ns: 1,
    hostname: "renewed",
});

/// Requests of each feature that have an answer without anything else, and whether
/// the agent was compiled with the feature.
const OPTIONAL: [(Request<'static>, bool); 6] = [
    (STAT, cfg!(feature = "files")),
    (Request::Dial { port: 1 }, cfg!(feature = "ports")),
    (
        Request::Service(ServiceRequest::List { after: "" }),
        cfg!(feature = "services"),
    ),
    (
        Request::Service(ServiceRequest::GetState { name: "none" }),
        cfg!(feature = "services"),
    ),
    (
        Request::Terminal(TerminalRequest::List { after: 0 }),
        cfg!(feature = "terminals"),
    ),
    (
        Request::Terminal(TerminalRequest::GetState {
            process: Selector::Id(99),
        }),
        cfg!(feature = "terminals"),
    ),
];

/// Returns the requests that the agent was compiled without.
fn absent() -> impl Iterator<Item = Request<'static>> {
    let absent = OPTIONAL.into_iter().filter(|(_, is_there)| !is_there);
    absent.map(|(request, _)| request)
}

const UNSUPPORTED: (FailureKind, Stage) = (FailureKind::Unsupported, Stage::Request);

/// Returns what the program does not allow.
fn denied() -> Capabilities {
    Capabilities::POWER_OFF
        | Capabilities::CLOCK
        | Capabilities::SNAPSHOTS
        | Capabilities::NETWORK
        | Capabilities::TRUST_STORE
        | Capabilities::PROCESS_COUNT
}

pub(crate) fn what_the_program_does_not_allow_is_not_announced_and_is_rejected(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    let denied = denied();
    let announced = program.host.capabilities;
    assert_eq!(announced.intersection(denied), Capabilities::NONE);
    for request in [
        Request::PowerOff { grace_ms: 0 },
        Request::SetClock { wall_time_ns: 1 },
        Request::Freeze,
        Request::Thaw,
        RENEW,
        Request::Network(NetworkRequest::Capture { prefixes: &[] }),
        Request::Network(NetworkRequest::Accept { ticket: 1 }),
        Request::CountProcesses,
        Request::SetTrustStore(TrustStore::default()),
    ] {
        assert_eq!(program.host.refused(&request), UNSUPPORTED);
    }
}

pub(crate) fn what_is_not_compiled_in_is_not_announced_and_is_rejected(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    let mut missing = absent().fold(denied(), |missing, request| missing | request.capability());
    if missing.contains(Capabilities::TERMINALS) {
        missing = missing | Capabilities::TERMINAL_READS;
    }
    assert_eq!(
        program.host.capabilities,
        Capabilities::ALL.difference(missing)
    );
    for request in absent() {
        let stream = program.host.open(&request);
        let outcome = program.host.outcome(stream);
        let (kind, stage) = UNSUPPORTED;
        assert_eq!(outcome, Reply::Failed(stream, kind, 0, stage));
        assert_eq!(
            program.host.failures[&stream],
            "the agent does not support this request"
        );
    }
}

/// A host may have sent more on a stream before it learns that the stream is
/// closed.
pub(crate) fn a_rejected_request_leaves_the_rest_of_the_link_alone(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    let host = &mut program.host;
    let running = host.start(&Spec::shell("read line; echo $line; exit 3").with_stdin());
    let denied = Request::SetClock { wall_time_ns: 1 };
    for request in absent().chain([denied]) {
        let stream = host.open(&request);
        host.write_stdin(stream, b"input");
        host.grant(stream, Channel::Stdout, 1000);
        host.send(|out| encode::end(out, stream, Channel::Stdin));
        host.cancel(stream);
        assert!(matches!(host.outcome(stream), Reply::Failed(..)));
        assert!(matches!(host.ask(&Request::Ping), Reply::Pong(_)));
    }
    host.write_stdin(running, b"still there\n");
    assert_eq!(code(&host.exit(running)), 3);
    assert_eq!(host.output(running, Channel::Stdout), b"still there\n");
    let (exit, output) = host.run(&Spec::new(&["echo", "another"]));
    assert_eq!((code(&exit), output.as_str()), (0, "another\n"));
}

pub(crate) fn what_is_compiled_in_is_served(mode: Mode) {
    let mut program = RunningProgram::start(mode);
    for (request, _) in OPTIONAL.into_iter().filter(|(_, is_there)| *is_there) {
        let capability = request.capability();
        assert!(program.host.capabilities.contains(capability));
        let outcome = program.host.ask(&request);
        if let Reply::Failed(_, kind, ..) = outcome {
            // Nothing listens on the port, and there is neither such a terminal
            // nor such a service.
            assert_ne!(kind, FailureKind::Unsupported, "{request:?}");
        }
    }
}

/// Has the agent do something on a file. Returns whether it was compiled with that.
pub(crate) fn stat_root(program: &mut RunningProgram) -> bool {
    if cfg!(feature = "files") {
        assert!(matches!(program.host.ask(&STAT), Reply::Done(_)));
    }
    cfg!(feature = "files")
}
