use std::{collections::BTreeSet, fmt, time::Duration};

use vmcell_wire::{
    PackedStringsBuf, ProcessMode, Start, Stdin,
    service::{Spec, StopPolicy, is_valid_name},
};

use super::{Liveness, Readiness, Restart, ServiceError, millis};
use crate::{
    error::Error,
    port::PortMapping,
    process::{Command, Input, Signal},
};

/// The description of a service: a command, and how it is supervised.
///
/// ```
/// use std::time::Duration;
/// use vmcell::{Command, service::{Liveness, Probe, Restart, ServiceSpec}};
///
/// let web = ServiceSpec::new(Command::new("httpd").args(["-f", "-p", "8080"]).user("cell"))
///     .ready(Probe::tcp(8080))
///     .alive(Liveness::new(Probe::http(8080, "/health")))
///     .restart(Restart::on_failure())
///     .grace(Duration::from_secs(3))
///     .needs("database");
/// # let _ = web;
/// ```
///
/// Its [`Debug`] shows the program but nothing of the environment.
#[derive(Clone)]
#[must_use]
pub struct ServiceSpec {
    command: Command,
    restart: Restart,
    stop_signal: Signal,
    grace: Duration,
    log_limit: Option<u32>,
    ready: Option<Readiness>,
    alive: Option<Liveness>,
    needs: BTreeSet<String>,
    ports: Vec<PortMapping>,
}

impl ServiceSpec {
    /// The default signal that asks a service to end: SIGTERM.
    pub const DEFAULT_STOP_SIGNAL: Signal = Signal::TERM;

    /// The default time that a service may take to end.
    pub const DEFAULT_GRACE: Duration = Duration::from_secs(10);

    /// Creates a service that runs this command. By default it is not
    /// restarted, and counts as ready as soon as it runs.
    ///
    /// A service has no standard input and no time limit: a command with one is
    /// rejected when it is started. The command's tag and its limits on
    /// collected output are ignored.
    pub fn new(command: Command) -> Self {
        Self {
            command,
            restart: Restart::never(),
            stop_signal: Self::DEFAULT_STOP_SIGNAL,
            grace: Self::DEFAULT_GRACE,
            log_limit: None,
            ready: None,
            alive: None,
            needs: BTreeSet::new(),
            ports: Vec::new(),
        }
    }

    /// Sets the restart policy; never by default.
    pub fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// Sets the signal that asks it to end; SIGTERM by default.
    pub fn stop_signal(mut self, signal: Signal) -> Self {
        self.stop_signal = signal;
        self
    }

    /// Sets how long it may take to end after that signal before all its
    /// processes are killed; 10 seconds by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how many bytes of its log the guest keeps, the newest ones: 1 MiB
    /// by default, at least 16 KiB, at most [`Command::MAX_KEPT`].
    pub fn log_limit(mut self, bytes: u32) -> Self {
        self.log_limit = Some(bytes);
        self
    }

    /// Sets the readiness check; by default it is ready as soon as it runs.
    ///
    /// ```
    /// use vmcell::{Command, service::{Probe, ServiceSpec}};
    ///
    /// let spec = ServiceSpec::new(Command::shell("exec my-server")).ready(Probe::tcp(8080));
    /// # let _ = spec;
    /// ```
    pub fn ready(mut self, readiness: impl Into<Readiness>) -> Self {
        self.ready = Some(readiness.into());
        self
    }

    /// Sets the check that detects, once it is ready, that it no longer works.
    pub fn alive(mut self, liveness: impl Into<Liveness>) -> Self {
        self.alive = Some(liveness.into());
        self
    }

    /// Adds a service that must be ready before this one is started. Can be
    /// called several times.
    pub fn needs(mut self, name: impl Into<String>) -> Self {
        self.needs.insert(name.into());
        self
    }

    /// Publishes a port of the guest on this machine, as
    /// [`Ports::publish`](crate::port::Ports::publish) does, from the start of
    /// the service until it finishes. Can be called several times. If the port
    /// of this machine is not available, nothing is started.
    ///
    /// The program that owns the VM publishes the port, also if a program starts the
    /// service that is [attached](crate::Vm::attach): the port stays open when that one
    /// ends. Ports are ignored when two specs are
    /// [compared](super::Services::ensure_started).
    ///
    /// ```
    /// use vmcell::{Command, service::{Probe, ServiceSpec}};
    ///
    /// let web = ServiceSpec::new(Command::new("my-server"))
    ///     .ready(Probe::tcp(8080))
    ///     .publish((18080, 8080));
    /// # let _ = web;
    /// ```
    pub fn publish(mut self, mapping: impl Into<PortMapping>) -> Self {
        self.ports.push(mapping.into());
        self
    }

    /// Returns the ports to publish.
    pub(super) fn published(&self) -> &[PortMapping] {
        &self.ports
    }

    /// Returns the names of the services that it needs.
    pub(super) fn needed(&self) -> impl Iterator<Item = &str> {
        self.needs.iter().map(String::as_str)
    }

    /// Returns the program, for errors.
    pub(super) fn program(&self) -> String {
        self.command.program()
    }

    /// Returns the encoded spec as the agent stores it. Equal specs give equal
    /// bytes.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        self.check()?;
        let ready = self.ready.as_ref();
        let ready = ready
            .map(|ready| Ok::<_, Error>((ready, ready.probe.prepare()?)))
            .transpose()?;
        let alive = self.alive.as_ref();
        let alive = alive
            .map(|alive| Ok::<_, Error>((alive, alive.probe.prepare()?)))
            .transpose()?;
        let mut needs = PackedStringsBuf::new();
        for need in &self.needs {
            // A valid name has no zero byte.
            let _ = needs.push(need.as_bytes());
        }
        let (bytes, _) = self.command.with_start(ProcessMode::Background, |start| {
            let spec = Spec {
                // Cleared: they differ from call to call, or are ignored.
                start: Start {
                    ticket: 0,
                    tag: "",
                    stdin: Stdin::Empty,
                    timeout_ms: 0,
                    keep: self.log_limit.unwrap_or(start.keep),
                    ..start
                },
                restart: self.restart.as_wire(),
                stop: StopPolicy {
                    signal: self.stop_signal.number(),
                    grace_ms: millis(self.grace),
                },
                ready: ready
                    .as_ref()
                    .map(|(ready, probe)| ready.as_wire(probe.as_wire())),
                alive: alive
                    .as_ref()
                    .map(|(alive, probe)| alive.as_wire(probe.as_wire())),
                needs: needs.as_packed(),
            };
            let bytes = spec.to_bytes();
            bytes.map_err(|error| Error::Invalid(error.to_string()))
        })?;
        Ok(bytes)
    }

    fn check(&self) -> Result<(), Error> {
        let refused = if !matches!(self.command.input, Input::Empty) {
            "a service has no standard input: remove it from the command"
        } else if self.command.timeout.is_some() {
            "a service has no time limit: remove it from the command"
        } else if self.stop_signal == Signal::NULL {
            "signal 0 cannot stop a service: use another stop signal"
        } else if self
            .alive
            .as_ref()
            .is_some_and(|alive| alive.probe.is_log())
        {
            "a log probe cannot check that a service is alive: use another probe"
        } else {
            let bad = self.needs.iter().find(|need| !is_valid_name(need));
            return match bad.cloned() {
                Some(name) => Err(ServiceError::BadName { name }.into()),
                None => Ok(()),
            };
        };
        Err(Error::Invalid(refused.to_owned()))
    }
}

impl fmt::Debug for ServiceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceSpec")
            .field("program", &self.command.program())
            .field("restart", &self.restart)
            .field("stop_signal", &self.stop_signal)
            .field("grace", &self.grace)
            .field("ready", &self.ready)
            .field("alive", &self.alive)
            .field("needs", &self.needs)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{LogPatternError, Probe};

    fn spec() -> ServiceSpec {
        let command = Command::new("server").env("TOKEN", "hunter2").env("A", "1");
        ServiceSpec::new(command)
            .ready(Probe::command(["test", "-e", "/ready"]))
            .alive(Probe::tcp(80))
            .needs("db")
    }

    fn refusal(spec: &ServiceSpec) -> String {
        spec.to_bytes().unwrap_err().to_string()
    }

    #[test]
    fn the_same_spec_gives_the_same_bytes_and_another_one_does_not() {
        let bytes = spec().to_bytes().unwrap();
        assert_eq!(bytes, spec().to_bytes().unwrap());
        let other_order = Command::new("server").env("A", "1").env("TOKEN", "hunter2");
        let same = ServiceSpec {
            command: other_order.tag("mine"),
            ..spec()
        };
        assert_eq!(bytes, same.to_bytes().unwrap());
        for other in [
            spec().needs("cache"),
            spec().grace(Duration::from_secs(1)),
            spec().stop_signal(Signal::INT),
            spec().restart(Restart::always()),
            spec().log_limit(1 << 16),
            spec().ready(Readiness::new(Probe::command(["test", "-e", "/other"]))),
        ] {
            assert_ne!(bytes, other.to_bytes().unwrap(), "{other:?}");
        }
        let [up, same, other] = ["up [0-9]+", "up [0-9]+", "up [0-8]+"]
            .map(|pattern| spec().ready(Probe::log(pattern)));
        assert_eq!(up.to_bytes().unwrap(), same.to_bytes().unwrap());
        assert_ne!(up.to_bytes().unwrap(), other.to_bytes().unwrap());
    }

    #[test]
    fn what_the_guest_reads_is_what_was_said() {
        let bytes = spec()
            .restart(Restart::on_failure())
            .stop_signal(Signal::INT)
            .grace(Duration::from_millis(1500))
            .needs("cache")
            .to_bytes()
            .unwrap();
        let decoded = Spec::from_bytes(&bytes).unwrap();
        assert_eq!((decoded.start.ticket, decoded.start.tag), (0, ""));
        assert_eq!((decoded.stop.signal, decoded.stop.grace_ms), (2, 1500));
        assert_eq!(
            (decoded.restart.pause_ms, decoded.restart.max_pause_ms),
            (100, 10_000)
        );
        let needs: Vec<_> = decoded.needs.iter().map(|need| need.to_bytes()).collect();
        assert_eq!(needs, [&b"cache"[..], b"db"]);
        let ready = decoded.ready.unwrap();
        assert_eq!((ready.delay_ms, ready.interval_ms), (0, 500));
        assert_eq!((ready.timeout_ms, ready.attempt_ms), (30_000, 5000));
        let vmcell_wire::service::Probe::Command { argv } = ready.probe else {
            panic!("{ready:?}");
        };
        assert_eq!(argv.iter().count(), 3);
        let alive = decoded.alive.unwrap();
        assert_eq!((alive.interval_ms, alive.failures), (10_000, 3));
    }

    #[test]
    fn no_value_of_the_environment_is_shown() {
        let shown = format!("{:?}", spec());
        assert!(shown.contains("server") && shown.contains("db"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        let with = |command| ServiceSpec::new(command);
        let sleep = || Command::new("sleep");
        let refused = refusal(&with(sleep().stdin("x")));
        assert!(refused.contains("no standard input"), "{refused}");
        let refused = refusal(&with(sleep().timeout(Duration::from_secs(1))));
        assert!(refused.contains("no time limit"), "{refused}");
        let refused = refusal(&spec().stop_signal(Signal::NULL));
        assert!(refused.contains("signal 0 cannot stop"), "{refused}");
        let refused = refusal(&spec().alive(Probe::log("x")));
        assert!(refused.contains("another probe"), "{refused}");
        let refused = refusal(&spec().needs("a/b"));
        assert!(refused.contains("\"a/b\" cannot be the name"), "{refused}");
        for (probe, reason) in [
            (Probe::tcp(0), "1 to 65535"),
            (Probe::file("ready"), "absolute"),
            (Probe::unix("/a\0b"), "zero"),
            (Probe::http(80, "health").into(), "begins with /"),
            (Probe::http(80, "/a b").into(), "no spaces"),
            (Probe::http(80, "/\r\nX: y").into(), "no spaces"),
            (
                Probe::http(80, "/")
                    .status(std::ops::RangeInclusive::new(300, 200))
                    .into(),
                "empty",
            ),
            (Probe::command([""; 0]), "no program"),
            (Probe::command(["a", "b\0c"]), "zero byte"),
            (Probe::log(""), "pattern"),
            (Probe::log("a("), "character 2"),
            (Probe::log("a{1000}"), "too large"),
            (Probe::log("(?m)^a"), "assertion"),
        ] {
            let refused = refusal(&spec().ready(probe));
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn a_pattern_that_is_not_valid_is_told_with_its_reason() {
        let error = spec().ready(Probe::log("on (port")).to_bytes().unwrap_err();
        let Error::Service(ServiceError::BadLogPattern { pattern, reason }) = &error else {
            panic!("{error:?}");
        };
        assert_eq!(pattern, "on (port");
        let position = 4;
        let unclosed = "unclosed group".to_owned();
        let expected = LogPatternError::Syntax {
            position,
            reason: unclosed,
        };
        assert_eq!(*reason, expected);
        let text = error.to_string();
        assert!(text.contains("\"on (port\" cannot be"), "{text}");
        assert!(text.contains("write \\ before"), "{text}");
    }

    #[test]
    fn the_longest_times_are_the_longest_that_can_be_said() {
        let bytes = spec().grace(Duration::MAX).to_bytes().unwrap();
        let decoded = Spec::from_bytes(&bytes).unwrap();
        assert_eq!(decoded.stop.grace_ms, u32::MAX);
    }
}
