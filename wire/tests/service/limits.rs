//! Names, capabilities and limits of texts.

use super::*;

#[test]
fn services_and_ports_need_an_agent_that_has_them() {
    let request = Request::Service(ServiceRequest::List { after: "" });
    assert_eq!(request.capability(), Capabilities::SERVICES);
    assert_eq!(Request::Dial { port: 1 }.capability(), Capabilities::PORTS);
    assert_eq!(Capabilities::SERVICES.bits(), 16);
    assert_eq!(Capabilities::PORTS.bits(), 32);
    let both = Capabilities::SERVICES | Capabilities::PORTS;
    assert!(Capabilities::ALL.contains(both));
}

#[test]
fn names_are_short_and_plain() {
    let longest = "x".repeat(MAX_SERVICE_NAME);
    for name in ["a", "0", "web-1.main_x", &longest] {
        assert!(is_valid_name(name), "{name}");
    }
    let too_long = "x".repeat(MAX_SERVICE_NAME + 1);
    for name in [
        "", "-a", ".a", "_a", "a b", "a:b", "a/b", "ä", "a\n", &too_long,
    ] {
        assert!(!is_valid_name(name), "{name}");
    }
    // The tag of a service's process contains its name.
    assert!("service:".len() + MAX_SERVICE_NAME <= MAX_TAG);
}

#[test]
fn a_state_with_a_text_past_its_limit_is_refused() {
    let name = "n".repeat(MAX_SERVICE_NAME);
    let text = "t".repeat(MAX_FAILURE_TEXT);
    let (long_name, long_text) = (format!("{name}n"), format!("{text}t"));
    let state = |name, phase| ServiceState {
        name,
        phase,
        since_ms: 0,
        pid: None,
        restarts: 0,
        last_exit: None,
        log: BufferedRange { start: 0, end: 0 },
    };
    let is_refused = |state: ServiceState<'_>| {
        let mut close = Vec::new();
        encode::close(&mut close, stream(), &Outcome::Service(state)).unwrap();
        let mut listed = Vec::new();
        encode::event(&mut listed, stream(), &Event::Service(state)).unwrap();
        let [close, listed] = [close, listed].map(|bytes| decoded(Peer::Guest, &bytes).is_err());
        assert_eq!(close, listed);
        close
    };
    let failure = |text| Failure::new(FailureKind::Other, Stage::Exec, text);
    let failed = Phase::Failed;
    for (short, long) in [
        (Phase::Waiting(&name), Phase::Waiting(&long_name)),
        (
            failed(FailureReason::DependencyFailed(&name)),
            failed(FailureReason::DependencyFailed(&long_name)),
        ),
        (
            failed(FailureReason::NotReady(&text)),
            failed(FailureReason::NotReady(&long_text)),
        ),
        (
            failed(FailureReason::NotAlive(&text)),
            failed(FailureReason::NotAlive(&long_text)),
        ),
        (
            failed(FailureReason::NotStarted(failure(&text))),
            failed(FailureReason::NotStarted(failure(&long_text))),
        ),
    ] {
        assert!(!is_refused(state(&name, short)), "{short:?}");
        assert!(is_refused(state(&name, long)), "{long:?}");
        assert!(is_refused(state(&long_name, short)), "{short:?}");
    }
}
