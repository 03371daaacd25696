//! All kinds of probes.

use std::{
    io::{Read, Write},
    net::{Ipv6Addr, TcpListener},
    os::unix::net::UnixListener,
    time::{Duration, Instant},
};

use vmcell_wire::service::{RestartPolicy, WaitFor};

use super::{
    helpers::{
        ALL, Config, LONG_MS, Probe, log, look, open_log, open_wait, outcome, start, stop,
        until_over, until_printed, until_ready,
    },
    web_server::{WebServer, free_port},
};
use crate::client::RunningAgent;

/// Much longer than an event takes, and shorter than the interval.
const EVENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns a service with so long an interval between attempts that only an
/// event can make it ready in time.
fn seldom_probed(probe: Probe) -> Config {
    Config::idle()
        .ready(probe)
        .with(|c| c.interval_ms = LONG_MS)
}

#[test]
fn a_file_is_seen_as_soon_as_it_is_there() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run/app/ready");
    let probe = Probe::File(path.display().to_string());
    let state = start(&mut host, "web", &seldom_probed(probe));
    assert_eq!(state.phase, "Starting");
    let ready = open_wait(&mut host, "web", WaitFor::Ready);
    let begun = Instant::now();
    std::fs::create_dir(dir.path().join("run")).unwrap();
    std::fs::create_dir(dir.path().join("run/app")).unwrap();
    std::fs::write(dir.path().join("run/app/other"), "").unwrap();
    assert_eq!(look(&mut host, "web").phase, "Starting");
    std::fs::write(&path, "").unwrap();
    assert_eq!(outcome(&mut host, ready).phase, "Ready");
    assert!(begun.elapsed() < EVENT_TIMEOUT);
}

#[test]
fn a_file_that_the_kernel_does_not_tell_of_is_found_by_asking() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let (link, target) = (dir.path().join("link"), dir.path().join("far/target"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let probe = Probe::File(link.display().to_string());
    start(&mut host, "web", &Config::idle().ready(probe));
    let ready = open_wait(&mut host, "web", WaitFor::Ready);
    std::fs::create_dir(dir.path().join("far")).unwrap();
    std::fs::write(&target, "").unwrap();
    assert_eq!(outcome(&mut host, ready).phase, "Ready");
}

#[test]
fn a_port_is_ready_when_somebody_listens_on_either_protocol() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let port = free_port();
    start(&mut host, "old", &Config::idle().ready(Probe::Tcp(port)));
    let ready = open_wait(&mut host, "old", WaitFor::Ready);
    assert_eq!(look(&mut host, "old").phase, "Starting");
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    assert_eq!(outcome(&mut host, ready).phase, "Ready");
    if let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        let port = listener.local_addr().unwrap().port();
        start(&mut host, "new", &Config::idle().ready(Probe::Tcp(port)));
        assert_eq!(until_ready(&mut host, "new").phase, "Ready");
    }
}

#[test]
fn a_socket_is_ready_when_somebody_listens() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let probe = Probe::Unix(path.display().to_string());
    start(&mut host, "db", &Config::idle().ready(probe));
    let ready = open_wait(&mut host, "db", WaitFor::Ready);
    // A file is not enough.
    std::fs::write(&path, "").unwrap();
    assert_eq!(look(&mut host, "db").phase, "Starting");
    std::fs::remove_file(&path).unwrap();
    let _listener = UnixListener::bind(&path).unwrap();
    assert_eq!(outcome(&mut host, ready).phase, "Ready");
}

#[test]
fn a_page_is_asked_for_until_it_is_as_it_should_be() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let pages = WebServer::new();
    let probe = |path: &str| Probe::Http {
        port: pages.port(),
        path: path.into(),
        body: "it works".into(),
    };
    let config = Config::idle().ready(probe("/health?full=1"));
    start(&mut host, "web", &config);
    let ready = open_wait(&mut host, "web", WaitFor::Ready);
    pages.answer("HTTP/1.1 503 Later\r\n\r\n");
    pages.answer("SSH-2.0-nonsense\r\n");
    pages.answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnope");
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let request = pages.answer(&format!("{chunked}3\r\nit \r\n5\r\nworks\r\n0\r\n\r\n"));
    assert!(
        request.starts_with("GET /health?full=1 HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("\r\nHost: localhost\r\n"), "{request}");
    assert_eq!(outcome(&mut host, ready).phase, "Ready");
}

#[test]
fn a_reason_tells_what_the_last_attempt_has_seen() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing").display().to_string();
    for (probe, reason) in [
        (Probe::File(missing.clone()), "no such file"),
        (Probe::Unix(missing), "no such file"),
        (Probe::Tcp(free_port()), "connection refused"),
        (Probe::Command("exit 7".into()), "exit code 7"),
        (Probe::Command("kill -9 $$".into()), "ended by signal 9"),
        (Probe::Log("never".into()), "no line of its log matches"),
    ] {
        let service = Config::idle()
            .ready(probe.clone())
            .with(|c| c.ready_ms = 1500);
        start(&mut host, "web", &service);
        let over = until_over(&mut host, "web");
        let expected = format!("Failed(NotReady({reason:?}))");
        assert_eq!(over.phase, expected, "{probe:?}");
        assert!(over.last_exit.is_some());
    }
}

#[test]
fn nothing_is_asked_before_the_delay_is_over() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = Config::idle().ready(Probe::Tcp(port)).with(|service| {
        service.delay_ms = LONG_MS;
        service.ready_ms = 300;
    });
    start(&mut host, "web", &service);
    let over = until_over(&mut host, "web");
    assert_eq!(over.phase, "Failed(NotReady(\"it was not probed yet\"))");
    assert!(listener.accept().is_err());
}

#[test]
fn a_line_of_the_log_is_seen_as_it_comes_and_only_of_this_run() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("go").display().to_string();
    let script = format!("mkfifo {pipe}; cat {pipe} >&2; rm {pipe}; exec sleep 1000");
    let service = Config::new(&script).ready(Probe::Log("^ready on [0-9]+$".into()));
    start(&mut host, "web", &service);
    let ready = open_wait(&mut host, "web", WaitFor::Ready);
    let stream = open_log(&mut host, "web", ALL, true);
    let mut service = open_fifo(&pipe);
    service.write_all(b"not ready on 80\nready on ").unwrap();
    until_printed(&mut host, stream, "ready on ", 2);
    assert_eq!(look(&mut host, "web").phase, "Starting");
    service.write_all(b"8080\n").unwrap();
    assert_eq!(outcome(&mut host, ready).phase, "Ready");
    drop(service);
    stop(&mut host, "web");
    outcome(&mut host, stream);
    // The line of the first run does not count for the second one.
    let silent = Config::idle()
        .ready(Probe::Log("^ready on [0-9]+$".into()))
        .with(|c| c.ready_ms = 200);
    start(&mut host, "web", &silent);
    let over = until_over(&mut host, "web");
    assert_eq!(
        over.phase,
        "Failed(NotReady(\"no line of its log matches\"))"
    );
    assert_eq!(
        log(&mut host, "web", ALL),
        "not ready on 80\nready on 8080\n"
    );
}

/// Opens a FIFO that another process is about to create.
fn open_fifo(path: &str) -> std::fs::File {
    let begun = Instant::now();
    while begun.elapsed() < EVENT_TIMEOUT {
        match std::fs::OpenOptions::new().write(true).open(path) {
            Ok(file) => return file,
            Err(_) => std::thread::yield_now(),
        }
    }
    panic!("{path} was not made")
}

#[test]
fn last_words_without_an_end_of_line_count() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let service = Config::new("printf ready").ready(Probe::Log("ready".into()));
    start(&mut host, "short", &service);
    assert_eq!(until_over(&mut host, "short").phase, "Stopped");
    // Without them it has exited before it was ready, whatever its exit code.
    let service = Config::new("exit 0")
        .ready(Probe::Log("ready".into()))
        .policy(RestartPolicy::Always);
    start(&mut host, "mute", &service);
    let over = until_over(&mut host, "mute");
    assert_eq!((over.phase.as_str(), over.restarts), ("Failed(Exited)", 0));
}

#[test]
fn a_service_that_floods_its_log_is_found_ready_all_the_same() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "seq -f 'line number %g' 20000; echo ready; exec seq 100000000";
    let service = Config::new(script)
        .ready(Probe::Log("^ready$".into()))
        .with(|c| c.program.start.keep = 1 << 20);
    start(&mut host, "loud", &service);
    let ready = open_wait(&mut host, "loud", WaitFor::Ready);
    // The agent answers other requests meanwhile.
    look(&mut host, "loud");
    assert_eq!(outcome(&mut host, ready).phase, "Ready");
    let stopped = stop(&mut host, "loud");
    assert!(stopped.log.1 - stopped.log.0 <= 1 << 20);
}

#[test]
fn a_command_runs_where_the_service_does_until_it_exits_with_0() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let service = Config::idle()
        .ready(Probe::Command("test -e \"$FLAG\" && test -e here".into()))
        .with(|service| {
            service.program.cwd = dir.path().display().to_string();
            service.program.env.push(b"FLAG=flag".to_vec());
        });
    start(&mut host, "web", &service);
    let ready = open_wait(&mut host, "web", WaitFor::Ready);
    std::fs::write(dir.path().join("here"), "").unwrap();
    assert_eq!(look(&mut host, "web").phase, "Starting");
    // Hosts cannot see its process.
    assert!(
        host.list(0)
            .0
            .iter()
            .all(|process| process.tag == "service:web")
    );
    std::fs::write(dir.path().join("flag"), "").unwrap();
    assert_eq!(outcome(&mut host, ready).phase, "Ready");
}

#[test]
fn a_service_that_works_no_more_is_restarted() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("alive");
    std::fs::write(&flag, "").unwrap();
    let service = Config::new("echo run; exec sleep 1000")
        .alive(Probe::File(flag.display().to_string()))
        .policy(RestartPolicy::Always);
    start(&mut host, "web", &service);
    let stream = open_log(&mut host, "web", ALL, true);
    until_printed(&mut host, stream, "run\n", 1);
    std::fs::remove_file(&flag).unwrap();
    until_printed(&mut host, stream, "run\n", 3);
    std::fs::write(&flag, "").unwrap();
    let seen = until_ready(&mut host, "web");
    assert!(seen.restarts >= 2, "{seen:?}");
    stop(&mut host, "web");
    // Without a restart policy it has failed, and reports why.
    let service = Config::idle().alive(Probe::Command("exit 4".into()));
    start(&mut host, "web", &service);
    let over = until_over(&mut host, "web");
    assert_eq!(over.phase, "Failed(NotAlive(\"exit code 4\"))");
}

#[test]
fn a_failure_now_and_then_is_none() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let pages = WebServer::new();
    let service = Config::idle()
        .alive(Probe::Http {
            port: pages.port(),
            path: "/".into(),
            body: String::new(),
        })
        .with(|c| c.failures = 2);
    start(&mut host, "web", &service);
    for _ in 0..4 {
        pages.answer("HTTP/1.1 500 No\r\n\r\n");
        pages.answer("HTTP/1.1 200 Yes\r\n\r\n");
    }
    assert_eq!(look(&mut host, "web").phase, "Running");
    pages.answer("HTTP/1.1 500 No\r\n\r\n");
    pages.answer("HTTP/1.1 501 No\r\n\r\n");
    let over = until_over(&mut host, "web");
    assert_eq!(over.phase, "Failed(NotAlive(\"HTTP status 501\"))");
}

#[test]
fn a_connection_that_a_probe_makes_is_closed_again() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    start(&mut host, "web", &Config::idle().ready(Probe::Tcp(port)));
    until_ready(&mut host, "web");
    let (mut connection, _) = listener.accept().unwrap();
    connection.set_read_timeout(Some(EVENT_TIMEOUT)).unwrap();
    assert_eq!(connection.read(&mut [0; 8]).unwrap(), 0);
}
