//! Services whose program hangs before it is executed.

use vmcell_wire::{FailureKind, Request, service::Service};

use super::staff::{Ask, Job, look, start, stop, try_start, until_over, until_ready};
use crate::{
    client::{RunningAgent, Said},
    lease::Leased,
};

fn leased(script: &Leased) -> Job {
    Job::idle().with(|job| job.program.argv = vec![script.path().into_bytes()])
}

fn open_start(host: &mut crate::client::Host, name: &str, job: &Job) -> vmcell_wire::StreamId {
    host.open(&Request::Service(Service::Start(
        vmcell_wire::service::StartService {
            name,
            ticket: job.ticket,
            if_same: job.if_same,
            spec: &job.spec(),
        },
    )))
}

#[test]
fn a_service_that_hangs_before_its_program_can_be_looked_at_and_stopped() {
    let Some(mut script) = Leased::new("exec sleep 1000") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let job = leased(&script);
    let starting = open_start(&mut host, "web", &job);
    assert_eq!(look(&mut host, "web").phase, "Starting");
    // The same start again waits for the same process, another one is refused.
    let again = open_start(&mut host, "web", &job);
    let (_, other) = try_start(&mut host, "web", &leased(&script));
    assert!(matches!(other, Said::Failed(_, FailureKind::Conflict, ..)));
    assert_eq!(stop(&mut host, "web").phase, "Stopped");
    for stream in [starting, again] {
        assert!(matches!(host.outcome(stream), Said::Service(..)));
    }
    // And it starts when it can.
    let starting = open_start(&mut host, "web", &leased(&script));
    assert_eq!(look(&mut host, "web").phase, "Starting");
    script.release();
    assert!(matches!(host.outcome(starting), Said::Service(_, web) if web.phase == "Running"));
    stop(&mut host, "web");
}

#[test]
fn a_service_that_hangs_before_its_program_is_not_ready_in_time() {
    let Some(script) = Leased::new("exec sleep 1000") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let job = leased(&script)
        .ready(Ask::Log("never".into()))
        .with(|job| job.ready_ms = 200);
    open_start(&mut host, "web", &job);
    let over = until_over(&mut host, "web");
    assert!(over.phase.contains("NotReady"), "{}", over.phase);
}

#[test]
fn a_command_that_asks_and_hangs_is_no_answer() {
    let Some(mut script) = Leased::new("exit 0") else {
        return;
    };
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let job = Job::idle()
        .ready(Ask::Program(script.path()))
        .with(|job| job.attempt_ms = 200);
    assert_eq!(start(&mut host, "web", &job).phase, "Starting");
    assert_eq!(look(&mut host, "web").phase, "Starting");
    script.release();
    assert_eq!(until_ready(&mut host, "web").phase, "Ready");
    stop(&mut host, "web");
}
