//! Dependencies between services, and name conflicts.

use std::time::Duration;

use vmcell::{
    Command, Signal, Vm,
    service::{
        FailureReason, Probe, Readiness, ServiceCounts, ServiceError, ServicePhase, ServiceSpec,
    },
};

use super::{IDLE, failure, ready, run, service_error, shell, start_service, within};
use crate::start;

/// A service that records its start in a file, and is ready a little later.
fn recorded(name: &str) -> ServiceSpec {
    let line = format!("echo {name} >> /tmp/order; touch /tmp/{name}; {IDLE}");
    shell(line).ready(Probe::file(format!("/tmp/{name}")))
}

#[tokio::test]
async fn each_is_started_when_all_that_it_needs_is_ready() {
    let vm = start().await;
    let services = [
        ("web", recorded("web").needs("api").needs("cache")),
        ("api", recorded("api").needs("db")),
        ("db", recorded("db")),
        ("cache", recorded("cache").needs("db")),
    ];
    let started = within(vm.services().start_all(services)).await.unwrap();
    let names: Vec<&str> = started.iter().map(|service| service.name()).collect();
    assert_eq!(names, ["web", "api", "db", "cache"]);
    for service in &started {
        ready(service).await;
    }
    let order = run(&vm, "cat /tmp/order").await;
    let order: Vec<&str> = order.lines().collect();
    assert_eq!((order[0], order[3]), ("db", "web"));
    let counts = vm.services().count().await.unwrap();
    assert_eq!((counts.total, counts.running), (4, 4));

    // The status of a waiting service has the name that it waits for, and it
    // fails with that one.
    let never = Readiness::new(Probe::file("/tmp/never")).timeout(Duration::from_secs(3600));
    let slow = start_service(&vm, "slow", shell(IDLE).ready(never)).await;
    let waits = start_service(&vm, "waits", recorded("waits").needs("slow")).await;
    let status = waits.status().await.unwrap();
    let need = "slow".to_owned();
    assert_eq!(
        (status.phase, status.pid),
        (ServicePhase::Waiting { need }, None)
    );
    within(slow.stop()).await.unwrap();
    let failure = failure(&waits).await;
    let need = "slow".to_owned();
    assert_eq!(failure.reason(), Some(&FailureReason::Need(need)));
    let ServiceCounts { total, running, .. } = vm.services().count().await.unwrap();
    assert_eq!((total, running), (6, 4));
}

#[tokio::test]
async fn circles_and_strangers_are_refused_by_name_before_anything_is_started() {
    let vm = start().await;
    let services = vm.services();
    let cycle = [
        ("a", shell(IDLE).needs("b")),
        ("b", shell(IDLE).needs("c")),
        ("c", shell(IDLE).needs("b")),
    ];
    let error = service_error(services.start_all(cycle).await);
    assert!(error.to_string().contains("b -> c -> b"), "{error}");
    assert_eq!(error.code(), "service-cycle");
    let error = service_error(services.start("a", shell(IDLE).needs("a")).await);
    assert!(error.to_string().contains("a -> a"), "{error}");
    let strange = [("a", shell(IDLE)), ("b", shell(IDLE).needs("stranger"))];
    let unknown = ServiceError::UnknownNeed {
        name: "b".to_owned(),
        need: "stranger".to_owned(),
    };
    assert_eq!(service_error(services.start_all(strange).await), unknown);
    let alone = services.start("b", shell(IDLE).needs("stranger")).await;
    assert_eq!(service_error(alone), unknown);
    assert!(services.list().await.unwrap().is_empty());

    // Those that were started before the one that failed are removed again.
    let broken = ServiceSpec::new(Command::new("no-such-program")).needs("b");
    let partly = [
        ("c", broken),
        ("b", shell(IDLE).needs("a")),
        ("a", shell(IDLE)),
    ];
    let error = service_error(within(services.start_all(partly)).await);
    assert!(
        matches!(error, ServiceError::NotStarted { .. }),
        "{error:?}"
    );
    assert!(services.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_name_is_for_one_service_at_a_time() {
    let vm = start().await;
    let services = vm.services();
    let service = start_service(&vm, "web", shell(IDLE)).await;
    let pid = ready(&service).await.pid;
    let error = service_error(services.start("web", shell(IDLE)).await);
    let name = "web".to_owned();
    assert_eq!(error, ServiceError::Running { name });
    assert!(error.to_string().contains("ensure_started"), "{error}");
    // `ensure_started` accepts the same spec, and only the same.
    let same = within(services.ensure_started("web", shell(IDLE)))
        .await
        .unwrap();
    assert_eq!(same.status().await.unwrap().pid, pid);
    let other = shell(IDLE).stop_signal(Signal::INT);
    let error = service_error(services.ensure_started("web", other).await);
    assert!(matches!(error, ServiceError::Running { .. }), "{error:?}");
    let error = service_error(service.remove().await);
    assert!(
        matches!(error, ServiceError::NotStopped { .. }),
        "{error:?}"
    );

    // Of two programs that start it at once, one wins.
    let clients = Vm::attach(vm.id()).await.unwrap().services();
    for round in 0..5 {
        let name = format!("contested-{round}");
        let (ours, theirs) = within(async {
            tokio::join!(
                services.start(&name, shell(IDLE)),
                clients.start(&name, shell("exec sleep 99999"))
            )
        })
        .await;
        assert_ne!(ours.is_ok(), theirs.is_ok(), "{ours:?} {theirs:?}");
        let error = service_error(ours.and(theirs));
        assert!(matches!(error, ServiceError::Running { .. }), "{error:?}");
    }
}
