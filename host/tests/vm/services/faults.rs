//! Misbehaving probes, many services, and services that exhaust memory.

use std::time::Duration;

use vmcell::{
    Cause, Command,
    service::{FailureReason, Probe, Readiness, Restart, ServicePhase, ServiceSpec},
};

use super::{IDLE, TEST_TIMEOUT, ready, run, shell, start_service, wait_gone, within};
use crate::start;

#[tokio::test]
async fn a_probe_command_leaves_no_children() {
    let vm = start().await;
    // Each attempt leaves a process in its own session, and fails at first.
    let probe = Probe::shell("setsid sleep 7777 & sleep 8888 & test -e /tmp/flag");
    let readiness = Readiness::new(probe).interval(Duration::from_millis(50));
    let spec = shell("echo up; exec sleep 1000").ready(readiness);
    let service = start_service(&vm, "web", spec).await;
    for _ in 0..5 {
        let status = service.status().await.unwrap();
        assert_eq!(status.phase, ServicePhase::Starting);
        run(&vm, "true").await;
    }
    run(&vm, "touch /tmp/flag").await;
    ready(&service).await;
    wait_gone(&vm, "sleep 7777").await;
    wait_gone(&vm, "sleep 8888").await;
    // Nor is a probe listed as a process.
    assert!(vm.processes().list().await.unwrap().len() <= 1);
}

#[tokio::test]
async fn fifty_services_at_once() {
    let vm = start().await;
    let specs = (0..50).map(|number| {
        let line = format!("echo {number}; touch /tmp/ready-{number}; {IDLE}");
        let probe = Probe::file(format!("/tmp/ready-{number}"));
        // Fifty at once are slower than the default allows on a busy machine.
        let ready = Readiness::new(probe).timeout(TEST_TIMEOUT);
        (format!("s{number:02}"), shell(line).ready(ready))
    });
    let services = within(vm.services().start_all(specs)).await.unwrap();
    for service in &services {
        ready(service).await;
    }
    let list = vm.services().list().await.unwrap();
    assert_eq!(list.len(), 50);
    assert!(list.is_sorted_by_key(|status| status.name.clone()));
    assert!(
        list.iter()
            .all(|status| status.phase == ServicePhase::Ready)
    );
    for (number, service) in services.iter().enumerate() {
        let log = service.logs().text().await.unwrap();
        assert_eq!(log, format!("{number}\n"));
    }
    let stopping: Vec<_> = services
        .into_iter()
        .map(|service| tokio::spawn(async move { service.stop().await }))
        .collect();
    for stopping in stopping {
        let status = within(stopping).await.unwrap().unwrap();
        assert_eq!(status.phase, ServicePhase::Stopped);
    }
    let counts = vm.services().count().await.unwrap();
    assert_eq!((counts.total, counts.running), (50, 0));
    wait_gone(&vm, "sleep 100000").await;
}

#[tokio::test]
async fn a_service_that_eats_all_memory_is_named_and_the_agent_and_the_others_live() {
    let vm = start().await;
    let bystander = start_service(&vm, "bystander", shell(IDLE)).await;
    let pid = ready(&bystander).await.pid;
    // With a limit of its own, and restarted.
    let hog =
        Command::shell("test -e /tmp/eaten && exec sleep 1000; touch /tmp/eaten; tail /dev/zero");
    let quick = Restart::on_failure().backoff(Duration::ZERO, Duration::ZERO);
    let spec = ServiceSpec::new(hog.memory_max(16 << 20)).restart(quick);
    let limited = start_service(&vm, "limited", spec).await;
    let status = within(async {
        loop {
            let status = limited.status().await.unwrap();
            if status.restarts == 1 && status.phase.is_ready() {
                return status;
            }
        }
    })
    .await;
    assert_eq!(status.last_exit.unwrap().cause, Cause::OutOfMemory);
    // Without a limit of its own.
    let hog = ServiceSpec::new(Command::from_argv(["tail", "/dev/zero"]));
    let unlimited = start_service(&vm, "unlimited", hog).await;
    let status = within(unlimited.wait()).await.unwrap();
    assert_eq!(status.phase, ServicePhase::Failed(FailureReason::Died));
    assert_eq!(status.last_exit.unwrap().cause, Cause::OutOfMemory);
    assert!(within(vm.health()).await.is_healthy());
    assert_eq!(bystander.status().await.unwrap().pid, pid);
    assert_eq!(limited.status().await.unwrap().phase, ServicePhase::Running);
}
