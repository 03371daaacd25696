//! Services that several programs use, over links that break.

use std::time::Duration;

use vmcell::{
    Cause, Command, Vm,
    service::{LogEvent, Probe, Restart, ServicePhase, ServiceSpec},
};

use super::{IDLE, ready, run, shell, start_service, within};
use crate::start;

#[tokio::test]
async fn a_second_program_sees_waits_for_and_stops_a_service() {
    let vm = start().await;
    let client = Vm::attach(vm.id()).await.unwrap();
    run(&vm, "mkfifo /tmp/go").await;
    let line = "echo begun; read go < /tmp/go; touch /tmp/ready; exec sleep 1000";
    start_service(&vm, "web", shell(line).ready(Probe::file("/tmp/ready"))).await;

    let seen = within(client.services().get("web")).await.unwrap().unwrap();
    let status = seen.status().await.unwrap();
    assert_eq!(status.phase, ServicePhase::Starting);
    let (ready, _) = tokio::join!(ready(&seen), run(&vm, "echo > /tmp/go"));
    assert_eq!(ready.phase, ServicePhase::Ready);
    assert_eq!(client.services().list().await.unwrap().len(), 1);
    assert_eq!(seen.logs().text().await.unwrap(), "begun\n");

    let owners = vm.services().get("web").await.unwrap().unwrap();
    let (ended, stopped) = tokio::join!(within(owners.wait()), within(seen.stop()));
    assert_eq!(ended.unwrap().phase, ServicePhase::Stopped);
    assert_eq!(stopped.unwrap().phase, ServicePhase::Stopped);

    // A service that a client has started does not end with it.
    let clients = start_service(&client, "clients", shell(IDLE)).await;
    super::ready(&clients).await;
    drop((client, seen, clients));
    let left = vm.services().get("clients").await.unwrap().unwrap();
    assert_eq!(left.status().await.unwrap().phase, ServicePhase::Running);
}

#[tokio::test]
async fn waits_and_logs_go_on_over_links_that_break() {
    let vm = start().await;
    run(&vm, "mkfifo /tmp/go").await;
    let line = "read go < /tmp/go; seq 1 60000; echo done; read go < /tmp/go; exit 5";
    let service = start_service(&vm, "web", shell(line).ready(Probe::log("^done$"))).await;
    let mut log = service.logs().all().follow(true).stream().await.unwrap();
    let breaking = async {
        for _ in 0..5 {
            vm.reconnect().unwrap();
            assert!(within(vm.exec(["true"])).await.unwrap().success());
        }
        run(&vm, "echo > /tmp/go").await;
        vm.reconnect().unwrap();
    };
    let (status, ()) = tokio::join!(ready(&service), breaking);
    assert_eq!(status.phase, ServicePhase::Ready);

    let ending = async {
        run(&vm, "echo > /tmp/go").await;
        vm.reconnect().unwrap();
    };
    let (ended, ()) = tokio::join!(within(service.wait()), ending);
    assert_eq!(ended.unwrap().last_exit.unwrap().cause, Cause::Code(5));
    let mut printed = Vec::new();
    let mut drops = 0;
    while let Some(event) = within(log.next()).await.unwrap() {
        let LogEvent::Bytes { offset, bytes } = event else {
            panic!("{event:?}");
        };
        assert_eq!(offset, printed.len() as u64);
        printed.extend_from_slice(&bytes);
        if printed.len() > drops * 50_000 {
            drops += 1;
            vm.reconnect().unwrap();
        }
    }
    let expected: String = (1..=60_000).map(|number| format!("{number}\n")).collect();
    assert!(printed == format!("{expected}done\n").as_bytes());
    // A start whose reply is lost is not repeated.
    for round in 0..5 {
        let name = format!("again-{round}");
        let (started, ()) = tokio::join!(start_service(&vm, &name, shell(IDLE)), async {
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            vm.reconnect().unwrap();
        });
        let reconnect = async { vm.reconnect().unwrap() };
        let (stopped, ()) = tokio::join!(within(started.stop()), reconnect);
        assert_eq!(stopped.unwrap().phase, ServicePhase::Stopped);
    }
    let services = vm.services();
    let reconnect = async { vm.reconnect().unwrap() };
    let (list, ()) = tokio::join!(within(services.list()), reconnect);
    assert_eq!(list.unwrap().len(), 6);
}

#[tokio::test]
async fn a_secret_of_the_environment_is_the_services_alone() {
    let vm = start().await;
    let command = Command::shell("printf %s \"$TOKEN\" > /tmp/had; sleep 1000");
    let spec = ServiceSpec::new(command.env("TOKEN", "hunter2")).ready(Probe::file("/tmp/had"));
    let mut shown = format!("{spec:?}");
    let service = start_service(&vm, "web", spec).await;
    let status = ready(&service).await;
    let list = vm.services().list().await.unwrap();
    let processes = vm.processes().list().await.unwrap();
    let log = service.logs().text().await.unwrap();
    let arguments = run(&vm, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").await;
    shown += &format!(
        "{service:?} {status:?} {list:?} {processes:?} {log} {}",
        vm.console().unwrap()
    );
    shown += &arguments;
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_eq!(run(&vm, "cat /tmp/had").await, "hunter2");
}

#[tokio::test]
async fn a_vm_stops_with_its_services_and_starts_none_again() {
    let vm = start().await;
    let quick = Restart::always().backoff(Duration::ZERO, Duration::ZERO);
    for number in 0..5 {
        let spec = shell(IDLE).restart(quick);
        let service = start_service(&vm, &format!("s{number}"), spec).await;
        ready(&service).await;
    }
    let service = vm.services().get("s0").await.unwrap().unwrap();
    let waiting = tokio::spawn(async move { service.wait().await });
    within(vm.stop()).await.unwrap();
    // The waiting call returns, either with a status or an error.
    let _ = within(waiting).await.unwrap();
    assert!(vm.services().list().await.is_err());
}
