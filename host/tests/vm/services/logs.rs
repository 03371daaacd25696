//! Logs of services.

use std::time::Duration;

use vmcell::service::{LogEvent, LogStream, Probe, Restart, ServicePhase};

use super::{ready, shell, start_service, within};
use crate::start;

/// Reads a log to its end. Returns its bytes and how many were dropped before
/// the first of them, and checks the offsets.
async fn read(log: &mut LogStream) -> (Vec<u8>, u64) {
    let (mut all, mut dropped) = (Vec::new(), 0);
    let mut expected = None;
    while let Some(event) = within(log.next()).await.unwrap() {
        match event {
            LogEvent::Bytes { offset, bytes } => {
                assert_eq!(expected.unwrap_or(offset), offset);
                expected = Some(offset + bytes.len() as u64);
                all.extend_from_slice(&bytes);
            }
            LogEvent::Dropped { bytes } => dropped += bytes,
            other => panic!("{other:?}"),
        }
    }
    (all, dropped)
}

#[tokio::test]
async fn a_log_that_is_full_keeps_its_end_and_says_what_is_missing() {
    let vm = start().await;
    let spec = shell("seq 1 100000; exec sleep 1000")
        .ready(Probe::log("^100000$"))
        .log_limit(16 * 1024);
    let service = start_service(&vm, "chatty", spec).await;
    let status = ready(&service).await;
    let printed: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(status.log.end, printed.len() as u64);
    assert!(status.log.end - status.log.start <= 16 * 1024, "{status:?}");

    let mut log = service.logs().all().stream().await.unwrap();
    let (bytes, dropped) = read(&mut log).await;
    assert!(!bytes.is_empty() && printed.as_bytes().ends_with(&bytes));
    assert_eq!(dropped + bytes.len() as u64, status.log.end);
    assert_eq!(log.status().unwrap().phase, ServicePhase::Ready);
    let tail = service.logs().tail(3).text().await.unwrap();
    assert_eq!(tail, "99998\n99999\n100000\n");
    let since = service
        .logs()
        .since(status.log.end - 7)
        .bytes()
        .await
        .unwrap();
    assert_eq!(since, b"100000\n");
    assert_eq!(service.logs().text().await.unwrap().lines().count(), 200);
    // It still runs.
    assert!(!service.status().await.unwrap().phase.is_finished());
}

#[tokio::test]
async fn a_log_goes_on_over_restarts_and_new_starts_and_can_be_followed() {
    let vm = start().await;
    let quick = Restart::on_failure().backoff(Duration::ZERO, Duration::ZERO);
    let spec = shell(
        "n=$(cat /tmp/n 2>/dev/null || echo 0); n=$((n + 1)); echo $n > /tmp/n; \
         echo run $n; echo on standard error >&2; test $n -ge 3",
    )
    .restart(quick);
    let service = start_service(&vm, "counting", spec.clone()).await;
    let mut log = service.logs().all().follow(true).stream().await.unwrap();
    let (bytes, dropped) = read(&mut log).await;
    let text = "run 1\non standard error\nrun 2\non standard error\nrun 3\non standard error\n";
    assert_eq!(
        (String::from_utf8(bytes).unwrap().as_str(), dropped),
        (text, 0)
    );
    let status = log.status().unwrap();
    assert_eq!(
        (&status.phase, status.restarts),
        (&ServicePhase::Stopped, 2)
    );
    // Asking again returns nothing more.
    assert_eq!(log.next().await.unwrap(), None);

    let service = start_service(&vm, "counting", spec).await;
    within(service.wait()).await.unwrap();
    let since = service
        .logs()
        .since(text.len() as u64)
        .text()
        .await
        .unwrap();
    assert_eq!(since, "run 4\non standard error\n");
    within(service.remove()).await.unwrap();
    let service = start_service(&vm, "counting", shell("printf unfinished")).await;
    within(service.wait()).await.unwrap();
    let log = service.logs().tail(1).text().await.unwrap();
    assert_eq!(log, "unfinished");
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_nobody_up() {
    let vm = start().await;
    let line = "read go < /tmp/go; head -c 6000000 /dev/zero; touch /tmp/done; exec sleep 1000";
    super::run(&vm, "mkfifo /tmp/go").await;
    let service = start_service(&vm, "chatty", shell(line).ready(Probe::file("/tmp/done"))).await;
    let mut log = service.logs().all().follow(true).stream().await.unwrap();
    super::run(&vm, "echo > /tmp/go").await;
    // The output exceeds the windows and the log.
    ready(&service).await;
    assert!(within(vm.health()).await.is_healthy());
    let end = within(service.stop()).await.unwrap().log.end;
    let (mut came, mut dropped) = (0, 0);
    while let Some(event) = within(log.next()).await.unwrap() {
        match event {
            LogEvent::Bytes { bytes, .. } => came += bytes.len() as u64,
            LogEvent::Dropped { bytes } => dropped += bytes,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(came + dropped, end);
    assert!(dropped > 0);
}
