//! Services whose program hangs before it is executed.

use vmcell_wire::{FailureKind, Request, StreamId, service::ServiceRequest};

use super::helpers::{Config, Probe, look, start, stop, try_start, until_over, until_ready};
use crate::{
    client::{Reply, RunningAgent},
    lease::LeasedScript,
};

fn leased(script: &LeasedScript) -> Config {
    Config::idle().with(|c| c.program.argv = vec![script.path().into_bytes()])
}

fn open_start(host: &mut crate::client::Host, name: &str, service: &Config) -> StreamId {
    host.open(&Request::Service(ServiceRequest::Start(
        vmcell_wire::service::StartService {
            name,
            ticket: service.ticket,
            if_same: service.if_same,
            spec: &service.spec(),
        },
    )))
}

#[test]
fn a_service_that_hangs_before_its_program_can_be_looked_at_and_stopped() {
    let Some(mut script) = LeasedScript::new("exec sleep 1000") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = leased(&script);
    let starting = open_start(&mut host, "web", &service);
    assert_eq!(look(&mut host, "web").phase, "Starting");
    // The same start again waits for the same process; another one is rejected.
    let again = open_start(&mut host, "web", &service);
    let (_, other) = try_start(&mut host, "web", &leased(&script));
    assert!(matches!(other, Reply::Failed(_, FailureKind::Conflict, ..)));
    assert_eq!(stop(&mut host, "web").phase, "Stopped");
    for stream in [starting, again] {
        assert!(matches!(host.outcome(stream), Reply::Service(..)));
    }
    // It starts when it can.
    let starting = open_start(&mut host, "web", &leased(&script));
    assert_eq!(look(&mut host, "web").phase, "Starting");
    script.release();
    assert!(matches!(host.outcome(starting), Reply::Service(_, web) if web.phase == "Running"));
    stop(&mut host, "web");
}

#[test]
fn a_service_that_hangs_before_its_program_is_not_ready_in_time() {
    let Some(script) = LeasedScript::new("exec sleep 1000") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = leased(&script)
        .ready(Probe::log("never"))
        .with(|c| c.ready_ms = 200);
    open_start(&mut host, "web", &service);
    let over = until_over(&mut host, "web");
    assert!(over.phase.contains("NotReady"), "{}", over.phase);
}

#[test]
fn a_command_that_asks_and_hangs_is_no_answer() {
    let Some(mut script) = LeasedScript::new("exit 0") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::idle()
        .ready(Probe::Program(script.path()))
        .with(|c| c.attempt_ms = 200);
    assert_eq!(start(&mut host, "web", &service).phase, "Starting");
    assert_eq!(look(&mut host, "web").phase, "Starting");
    script.release();
    assert_eq!(until_ready(&mut host, "web").phase, "Ready");
    stop(&mut host, "web");
}
