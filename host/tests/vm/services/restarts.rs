//! Restart policies and liveness of services.

use std::time::Duration;

use vmcell::{
    Cause, Signal,
    service::{FailureReason, Liveness, LogEvent, LogStream, Probe, Restart, ServicePhase},
};

use super::{ready, run, shell, start_service, wait_gone, within};
use crate::start;

/// Returns the next complete line of a log.
async fn line(log: &mut LogStream, unread: &mut Vec<u8>) -> String {
    loop {
        if let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let rest = unread.split_off(end + 1);
            let line = std::mem::replace(unread, rest);
            return String::from_utf8(line).unwrap().trim_end().to_owned();
        }
        match within(log.next()).await.unwrap() {
            Some(LogEvent::Bytes { bytes, .. }) => unread.extend_from_slice(&bytes),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn what_crashes_is_started_again_after_pauses_that_grow_up_to_a_limit() {
    let vm = start().await;
    let millis = Duration::from_millis;
    let restart = Restart::on_failure().backoff(millis(100), millis(400));
    let spec = shell("cut -d ' ' -f 1 /proc/uptime; exit 7").restart(restart);
    let service = start_service(&vm, "looping", spec).await;
    let mut log = service.logs().all().follow(true).stream().await.unwrap();
    let mut unread = Vec::new();
    let mut starts = Vec::new();
    for _ in 0..6 {
        let seconds: f64 = line(&mut log, &mut unread).await.parse().unwrap();
        starts.push(seconds);
    }
    let pauses: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (pause, least) in pauses.iter().zip([0.1, 0.2, 0.4, 0.4, 0.4]) {
        // The guest's uptime is in hundredths of a second.
        assert!(*pause > least - 0.02, "{pauses:?}");
    }
    // It can be stopped at any time, also during a delay.
    let status = within(service.stop()).await.unwrap();
    assert_eq!(status.phase, ServicePhase::Stopped);
    assert!(status.restarts >= 5, "{status:?}");
    // Between its line and its exit it may still have received the signal.
    let cause = status.last_exit.unwrap().cause;
    assert!(
        matches!(cause, Cause::Code(7) | Cause::Signal(Signal::TERM)),
        "{cause}"
    );
    while within(log.next()).await.unwrap().is_some() {}
    assert!(log.status().unwrap().phase.is_finished());
    // A restart on request resets the count.
    let status = within(service.restart()).await.unwrap();
    assert!(!status.phase.is_finished(), "{status:?}");
    assert_eq!(status.restarts, 0);
}

#[tokio::test]
async fn each_policy_does_as_it_says() {
    let vm = start().await;
    for (restart, line, phase) in [
        (Restart::never(), "exit 0", ServicePhase::Stopped),
        (
            Restart::never(),
            "exit 1",
            ServicePhase::Failed(FailureReason::Died),
        ),
        (Restart::on_failure(), "exit 0", ServicePhase::Stopped),
    ] {
        let service = start_service(&vm, "once", shell(line).restart(restart)).await;
        let status = within(service.wait()).await.unwrap();
        assert_eq!((status.phase, status.restarts), (phase, 0), "{line}");
    }
    // It only ends when it is stopped.
    let quick = Restart::always().backoff(Duration::from_millis(10), Duration::from_millis(10));
    let service = start_service(&vm, "always", shell("echo run").restart(quick)).await;
    let mut log = service.logs().all().follow(true).stream().await.unwrap();
    let mut unread = Vec::new();
    for _ in 0..3 {
        assert_eq!(line(&mut log, &mut unread).await, "run");
    }
    let status = within(service.stop()).await.unwrap();
    assert_eq!(status.phase, ServicePhase::Stopped);
}

#[tokio::test]
async fn what_is_not_alive_any_more_is_started_again() {
    let vm = start().await;
    let alive = Liveness::new(Probe::file("/tmp/alive"))
        .interval(Duration::from_millis(50))
        .failures(2);
    let restart = Restart::on_failure().backoff(Duration::ZERO, Duration::ZERO);
    let spec = shell("touch /tmp/alive; echo run; exec sleep 1000")
        .ready(Probe::file("/tmp/alive"))
        .alive(alive)
        .restart(restart);
    let service = start_service(&vm, "web", spec.clone()).await;
    let before = ready(&service).await;
    let mut log = service.logs().all().follow(true).stream().await.unwrap();
    let mut unread = Vec::new();
    assert_eq!(line(&mut log, &mut unread).await, "run");
    run(&vm, "rm /tmp/alive").await;
    assert_eq!(line(&mut log, &mut unread).await, "run");
    let after = ready(&service).await;
    assert_ne!(before.pid, after.pid);
    assert_eq!(after.restarts, 1);
    assert_eq!(after.last_exit.unwrap().cause, Cause::Signal(Signal::TERM));
    within(service.stop()).await.unwrap();
    run(&vm, "rm /tmp/alive").await;

    // Without a restart policy the service then fails.
    let service = start_service(&vm, "web", spec.restart(Restart::never())).await;
    ready(&service).await;
    run(&vm, "rm /tmp/alive").await;
    let status = within(service.wait()).await.unwrap();
    let ServicePhase::Failed(FailureReason::NotAlive(reason)) = status.phase else {
        panic!("{status:?}");
    };
    assert!(!reason.is_empty());
}

#[tokio::test]
async fn what_forks_and_exits_leaves_nothing_behind() {
    let vm = start().await;
    let line = "sleep 54321 & setsid sleep 65432 & echo forked; exit 0";
    let service = start_service(&vm, "daemon", shell(line)).await;
    let status = within(service.wait()).await.unwrap();
    assert_eq!(status.phase, ServicePhase::Stopped);
    wait_gone(&vm, "sleep 54321").await;
    wait_gone(&vm, "sleep 65432").await;
    assert_eq!(service.logs().text().await.unwrap(), "forked\n");
}

#[tokio::test]
async fn what_ignores_its_stop_signal_is_killed_when_its_time_is_up() {
    let vm = start().await;
    let line = "trap '' TERM; trap 'echo asked' INT; echo up; while :; do sleep 3210; done";
    let spec = shell(line).ready(Probe::log("up"));
    let stubborn = spec.clone().grace(Duration::from_millis(200));
    let service = start_service(&vm, "stubborn", stubborn).await;
    ready(&service).await;
    let status = within(service.stop()).await.unwrap();
    assert_eq!(status.phase, ServicePhase::Stopped);
    let cause = status.last_exit.unwrap().cause;
    assert!(
        matches!(cause, Cause::Signal(Signal::KILL) | Cause::Killed),
        "{cause}"
    );
    wait_gone(&vm, "sleep 3210").await;

    // The spec determines the signal.
    let polite = shell("trap 'echo asked; exit 0' INT; echo up; while :; do sleep 0.1; done");
    let polite = polite.ready(Probe::log("up")).stop_signal(Signal::INT);
    let service = start_service(&vm, "polite", polite).await;
    ready(&service).await;
    let status = within(service.stop()).await.unwrap();
    assert_eq!(status.last_exit.unwrap().cause, Cause::Code(0));
    assert_eq!(service.logs().text().await.unwrap(), "up\nasked\n");
}
