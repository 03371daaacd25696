//! Readiness of services.

use std::time::Duration;

use vmcell::{
    Cause, Command, ExecFailureKind, Signal,
    service::{
        FailureReason, Probe, Readiness, ServiceError, ServicePhase, ServiceSpec, ServiceStatus,
    },
};

use super::{failure, ready, run, service_error, shell, start_service, wait_gone, within};
use crate::{builder, start};

/// Services that become ready on request, each in a way that one kind of probe
/// detects.
#[tokio::test]
async fn each_kind_of_probe_tells_when_the_program_does_its_work() {
    let vm = start().await;
    run(&vm, "mkdir /www").await;
    let kinds: [(&str, &str, Readiness); 5] = [
        ("file", "touch /tmp/ready", Probe::file("/tmp/ready").into()),
        ("tcp", "httpd -p 8080", Probe::tcp(8080).into()),
        (
            "http",
            "httpd -p 8081 -h /www; echo fine > /www/health",
            Probe::http(8081, "/health").body_contains("fine").into(),
        ),
        (
            "command",
            "echo yes > /tmp/answer",
            Probe::command(["grep", "-q", "yes", "/tmp/answer"]).into(),
        ),
        (
            "log",
            "echo listening on port 80",
            Probe::log("^listening on port [0-9]+$").into(),
        ),
    ];
    let mut services = Vec::new();
    for (kind, work, readiness) in kinds {
        run(&vm, &format!("mkfifo /tmp/go-{kind}")).await;
        let line = format!("echo begun; read go < /tmp/go-{kind}; {work}; exec sleep 1000");
        let spec = shell(line).ready(readiness);
        services.push((kind, start_service(&vm, kind, spec).await));
    }
    for (kind, service) in &services {
        let status = service.status().await.unwrap();
        assert_eq!(status.phase, ServicePhase::Starting, "{kind}");
        assert!(status.pid.is_some(), "{status:?}");
        run(&vm, &format!("echo go > /tmp/go-{kind}")).await;
        let status = ready(service).await;
        assert_eq!(status.phase, ServicePhase::Ready, "{kind}");
        assert_eq!((status.restarts, status.last_exit), (0, None));
    }
    let list: Vec<ServiceStatus> = vm.services().list().await.unwrap();
    let names: Vec<&str> = list.iter().map(|status| status.name.as_str()).collect();
    assert_eq!(names, ["command", "file", "http", "log", "tcp"]);
    for (_, service) in &services {
        let status = within(service.stop()).await.unwrap();
        assert_eq!(status.phase, ServicePhase::Stopped);
        assert_eq!(status.pid, None);
        assert_eq!(status.last_exit.unwrap().cause, Cause::Signal(Signal::TERM));
        within(service.remove()).await.unwrap();
        let error = service_error(service.status().await);
        assert!(matches!(error, ServiceError::Unknown { .. }), "{error}");
    }
    assert_eq!(vm.services().count().await.unwrap().total, 0);
    // The servers had daemonised.
    wait_gone(&vm, "httpd").await;
}

#[tokio::test]
async fn a_socket_that_accepts_makes_a_service_ready() {
    let image = vmcell_rootfs::recipe::debian().cached().unwrap().path;
    let builder = builder().image(image).memory_mib(256);
    let vm = builder.start().await.unwrap();
    let program = "import socket, time\n\
                   server = socket.socket(socket.AF_UNIX)\n\
                   server.bind('/run/server.sock')\n\
                   print('bound', flush=True)\n\
                   input_ = open('/run/go').read()\n\
                   server.listen()\n\
                   time.sleep(1000)";
    run(&vm, "mkfifo /run/go").await;
    let python = Command::from_argv(["python3", "-c", program]);
    let spec = ServiceSpec::new(python).ready(Probe::unix("/run/server.sock"));
    let service = start_service(&vm, "server", spec).await;
    let mut log = service.logs().follow(true).stream().await.unwrap();
    within(log.next()).await.unwrap();
    // The socket exists, but does not listen yet.
    run(&vm, "test -S /run/server.sock").await;
    let status = service.status().await.unwrap();
    assert_eq!(status.phase, ServicePhase::Starting);
    run(&vm, "echo > /run/go").await;
    assert_eq!(ready(&service).await.phase, ServicePhase::Ready);
}

#[tokio::test]
async fn what_dies_before_it_is_ready_fails_at_once_with_its_last_words() {
    let vm = start().await;
    let line = "seq 1 100; printf 'no config: \\033[31mgiven up\\n' >&2; exit 3";
    let spec = shell(line).ready(Readiness::new(Probe::tcp(80)).timeout(Duration::from_secs(3600)));
    let service = start_service(&vm, "web", spec).await;
    let failure = failure(&service).await;
    assert_eq!(failure.name(), "web");
    assert_eq!(failure.reason(), Some(&FailureReason::Died));
    assert_eq!(failure.status.last_exit.unwrap().cause, Cause::Code(3));
    let lines: Vec<&str> = failure.log.lines().collect();
    assert_eq!(lines.len(), 20);
    assert_eq!((lines[0], lines[18]), ("82", "100"));
    assert_eq!(lines[19], "no config: \u{fffd}[31mgiven up");
    let text = failure.to_string();
    assert!(text.contains("\"web\" is not ready"), "{text}");
    assert!(
        text.contains("(exit code 3); its log ends with:\n82\n"),
        "{text}"
    );
    // It stays listed, and can be started again.
    let status = service.status().await.unwrap();
    assert_eq!(status.phase, ServicePhase::Failed(FailureReason::Died));
    let service = start_service(&vm, "web", shell(super::IDLE)).await;
    assert_eq!(ready(&service).await.phase, ServicePhase::Running);
}

#[tokio::test]
async fn what_is_not_ready_in_time_is_ended_and_says_what_was_missing() {
    let vm = start().await;
    let soon = |probe: Probe| {
        Readiness::new(probe)
            .interval(Duration::from_millis(50))
            .timeout(Duration::from_secs(5))
    };
    let briefly = |probe: Probe| soon(probe).attempt_timeout(Duration::from_millis(300));
    // This server accepts connections and sends nothing.
    let silent = shell("exec nc -ll -p 81 -e sleep 1000");
    let silent = start_service(&vm, "silent", silent.ready(Probe::tcp(81))).await;
    ready(&silent).await;
    let cases = [
        ("tcp", soon(Probe::tcp(9)), "refused"),
        ("file", soon(Probe::file("/nowhere/at/all")), "no such file"),
        ("http", briefly(Probe::http(81, "/").into()), "no answer"),
        ("command", soon(Probe::command(["false"])), "code 1"),
        ("hanging", briefly(Probe::command(["sleep", "777"])), ""),
        ("log", soon(Probe::log("never")), ""),
    ];
    let mut services = Vec::new();
    for (name, readiness, reason) in cases {
        let spec = shell("exec sleep 4242").ready(readiness);
        services.push((start_service(&vm, name, spec).await, reason));
    }
    for (service, reason) in services {
        let failure = failure(&service).await;
        let Some(FailureReason::NotReady(message)) = failure.reason() else {
            panic!("{failure:?}");
        };
        assert!(
            message.to_lowercase().contains(reason),
            "{}: {message}",
            service.name()
        );
        assert_eq!(
            failure.status.last_exit.unwrap().cause,
            Cause::Signal(Signal::TERM)
        );
    }
    wait_gone(&vm, "sleep 4242").await;
    wait_gone(&vm, "sleep 777").await;
}

#[tokio::test]
async fn what_cannot_be_started_is_refused_and_nothing_is_left_of_it() {
    let vm = start().await;
    let services = vm.services();
    let missing = ServiceSpec::new(Command::new("no-such-program"));
    let error = service_error(services.start("web", missing).await);
    let ServiceError::NotStarted { name, failure } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(
        (name.as_str(), failure.kind),
        ("web", ExecFailureKind::NotFound)
    );
    assert!(error.to_string().contains("no-such-program"), "{error}");
    let nobody = ServiceSpec::new(Command::new("sleep").user("nobody-at-all"));
    let error = service_error(services.start("web", nobody).await);
    assert!(
        matches!(error, ServiceError::NotStarted { .. }),
        "{error:?}"
    );

    let bad_pattern = shell("true").ready(Probe::log("a(b"));
    let error = service_error(services.start("web", bad_pattern).await);
    assert!(
        matches!(&error, ServiceError::BadLogPattern { pattern, .. } if pattern == "a(b"),
        "{error:?}"
    );
    for name in ["", "a/b", "-x", &"x".repeat(49)] {
        let error = service_error(services.start(name, shell("true")).await);
        assert!(matches!(error, ServiceError::BadName { .. }), "{error:?}");
    }
    assert!(services.get("web").await.unwrap().is_none());
    assert!(services.get("a/b").await.unwrap().is_none());
    assert!(services.list().await.unwrap().is_empty());
    assert!(vm.processes().list().await.unwrap().is_empty());
}
