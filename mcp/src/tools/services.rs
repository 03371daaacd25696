//! Services: programs of a workspace that keep running.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmcell::{
    Vm,
    port::PortMapping,
    service::{self, LogEvent, Probe, Readiness, ServiceError, ServiceSpec},
};

use super::workspaces::WorkspaceId;
use crate::{
    call::Call,
    command_line::{self, CommandLine, SecretEnv},
    execution::seconds,
    failure::Failure,
    hints::Hints,
    tool::Tool,
};

/// The service that a call is about.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedService {
    workspace_id: String,
    service_name: String,
}

/// A service as it is.
#[derive(Serialize, JsonSchema)]
pub(super) struct Status {
    service_name: String,
    /// waiting, starting, ready, running, restarting, stopping, stopped or failed.
    state: &'static str,
    /// Why it is in this state.
    reason: Option<String>,
    pid: Option<u32>,
    restarts: u32,
    last_exit_code: Option<u8>,
    published_ports: Vec<Published>,
}

#[derive(Serialize, JsonSchema)]
struct Published {
    /// On 127.0.0.1 of the host.
    host_port: Option<u16>,
    guest_port: u16,
}

impl From<service::ServiceStatus> for Status {
    fn from(status: service::ServiceStatus) -> Self {
        let ports = status.published.iter().map(|port| Published {
            host_port: port.host,
            guest_port: port.guest,
        });
        Self {
            state: status.phase.name(),
            reason: status.phase.reason(),
            pid: status.pid,
            restarts: status.restarts,
            last_exit_code: status.last_exit.and_then(|exit| exit.code()),
            published_ports: ports.collect(),
            service_name: status.name,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct One {
    workspace_id: String,
    service: Status,
}

async fn find(vm: &Vm, name: &str) -> Result<service::Service, Failure> {
    let found = vm.services().get(name).await?;
    let name = name.to_owned();
    Ok(found.ok_or_else(|| vmcell::Error::from(ServiceError::Unknown { name }))?)
}

pub(super) struct ServiceStart;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartInput {
    workspace_id: String,
    /// A name for it: letters, digits, `-`, `_` and `.`.
    service_name: String,
    /// A line for `sh -c`, or a program and its arguments.
    command: CommandLine,
    /// Working directory. Default: /workspace.
    cwd: Option<String>,
    /// When it is ready. Default: as soon as it runs.
    readiness: Option<ReadinessProbe>,
    /// How long it may take to become ready.
    #[serde(default = "default_ready_timeout")]
    ready_timeout_seconds: f64,
    /// How often the probe is tried.
    #[serde(default = "default_ready_interval")]
    ready_interval_ms: u64,
    /// Secrets of the workspace that it gets: name to environment variable.
    #[serde(default)]
    secret_env: SecretEnv,
    /// Ports of the guest to open on 127.0.0.1 of the host, if the network policy is
    /// egress+published-ports.
    #[serde(default)]
    published_ports: Vec<NewPort>,
}

fn default_ready_timeout() -> f64 {
    30.0
}

fn default_ready_interval() -> u64 {
    500
}

/// A probe that succeeds when the service is ready.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum ReadinessProbe {
    /// A file is there.
    File { path: String },
    /// A port of 127.0.0.1 accepts connections.
    Tcp { port: u16 },
    /// A port answers a request for a path with a status from 200 to 399.
    Http {
        port: u16,
        #[serde(default = "root_path")]
        path: String,
    },
    /// A line for `sh -c` succeeds.
    Command { command: String },
    /// A line that it prints matches a regular expression.
    Log { pattern: String },
}

fn root_path() -> String {
    "/".to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPort {
    guest_port: u16,
    /// Default: a free one.
    host_port: Option<u16>,
}

impl From<ReadinessProbe> for Probe {
    fn from(probe: ReadinessProbe) -> Self {
        match probe {
            ReadinessProbe::File { path } => Self::file(path),
            ReadinessProbe::Tcp { port } => Self::tcp(port),
            ReadinessProbe::Http { port, path } => Self::http(port, path).into(),
            ReadinessProbe::Command { command } => Self::shell(command),
            ReadinessProbe::Log { pattern } => Self::log(pattern),
        }
    }
}

impl Tool for ServiceStart {
    const NAME: &'static str = "service_start";
    const TITLE: &'static str = "Start a service in a workspace";
    const DESCRIPTION: &'static str = "\
Start a program of a workspace that keeps running, such as a web server, and wait until it is \
ready. service_logs shows what it prints.";
    const HINTS: Hints = Hints::RUNS;
    type Input = StartInput;
    type Output = One;

    async fn run(call: Call, input: StartInput) -> Result<One, Failure> {
        let timeout = seconds("ready_timeout_seconds", input.ready_timeout_seconds)?;
        if input.ready_interval_ms == 0 {
            return Err(Failure::invalid("ready_interval_ms: must be 1 or more"));
        }
        let mut command = input.command.into_command()?;
        if let Some(directory) = input.cwd {
            command = command.current_dir(directory);
        }
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let command = workspace.prepare(command).await?;
        let command = command_line::grant(&workspace, command, &input.secret_env).await?;
        let mut spec = ServiceSpec::new(command);
        if let Some(probe) = input.readiness {
            let interval = Duration::from_millis(input.ready_interval_ms);
            let readiness = Readiness::new(Probe::from(probe));
            spec = spec.ready(readiness.timeout(timeout).interval(interval));
        }
        for port in input.published_ports {
            spec = spec.publish(match port.host_port {
                Some(host) => PortMapping::from((host, port.guest_port)),
                None => PortMapping::from(port.guest_port),
            });
        }
        let service = vm.services().start(&input.service_name, spec).await?;
        Ok(One {
            workspace_id: workspace.id().to_owned(),
            service: service.ready().await?.into(),
        })
    }
}

pub(super) struct ServiceList;

#[derive(Serialize, JsonSchema)]
pub(super) struct List {
    workspace_id: String,
    services: Vec<Status>,
}

impl Tool for ServiceList {
    const NAME: &'static str = "service_list";
    const TITLE: &'static str = "List services of a workspace";
    const DESCRIPTION: &'static str = "List the services of a running workspace.";
    const HINTS: Hints = Hints::READS;
    type Input = WorkspaceId;
    type Output = List;

    async fn run(call: Call, input: WorkspaceId) -> Result<List, Failure> {
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let services = vm.services().list().await?;
        Ok(List {
            workspace_id: workspace.id().to_owned(),
            services: services.into_iter().map(Status::from).collect(),
        })
    }
}

pub(super) struct ServiceStatus;

impl Tool for ServiceStatus {
    const NAME: &'static str = "service_status";
    const TITLE: &'static str = "Show a service of a workspace";
    const DESCRIPTION: &'static str = "Return the state of a service.";
    const HINTS: Hints = Hints::READS;
    type Input = NamedService;
    type Output = One;

    async fn run(call: Call, input: NamedService) -> Result<One, Failure> {
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let service = find(&vm, &input.service_name).await?;
        Ok(One {
            workspace_id: workspace.id().to_owned(),
            service: service.status().await?.into(),
        })
    }
}

pub(super) struct ServiceLogs;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogsInput {
    workspace_id: String,
    service_name: String,
    /// How many lines are returned, the last ones.
    #[serde(default = "default_tail_lines")]
    tail_lines: u32,
    /// Return all that is kept.
    #[serde(default)]
    all: bool,
}

fn default_tail_lines() -> u32 {
    200
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Logs {
    workspace_id: String,
    service_name: String,
    log: String,
    /// How many bytes before them are not returned.
    omitted_bytes: u64,
}

/// How much of a log is returned at most: its end.
const MAX_LOG: usize = 256 * 1024;

impl Tool for ServiceLogs {
    const NAME: &'static str = "service_logs";
    const TITLE: &'static str = "Show the log of a service";
    const DESCRIPTION: &'static str = "Return the end of what a service has printed.";
    const HINTS: Hints = Hints::READS;
    type Input = LogsInput;
    type Output = Logs;

    async fn run(call: Call, input: LogsInput) -> Result<Logs, Failure> {
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let service = find(&vm, &input.service_name).await?;
        let request = match input.all {
            true => service.logs().all(),
            false => service.logs().tail(input.tail_lines),
        };
        let mut stream = request.stream().await?;
        let mut log = Vec::new();
        let mut omitted_bytes = 0;
        while let Some(event) = stream.next().await? {
            match event {
                LogEvent::Bytes { bytes, .. } => {
                    log.extend_from_slice(&bytes);
                    let excess = log.len().saturating_sub(MAX_LOG);
                    log.drain(..excess);
                    omitted_bytes += excess as u64;
                }
                LogEvent::Dropped { bytes } => {
                    omitted_bytes += bytes + log.len() as u64;
                    log.clear();
                }
                _ => {}
            }
        }
        Ok(Logs {
            workspace_id: workspace.id().to_owned(),
            service_name: input.service_name,
            log: String::from_utf8_lossy(&log).into_owned(),
            omitted_bytes,
        })
    }
}

pub(super) struct ServiceStop;

impl Tool for ServiceStop {
    const NAME: &'static str = "service_stop";
    const TITLE: &'static str = "Stop a service of a workspace";
    const DESCRIPTION: &'static str = "\
Stop a service: it is asked to end, and killed if it does not end in time.";
    const HINTS: Hints = Hints::DESTROYS;
    type Input = NamedService;
    type Output = One;

    async fn run(call: Call, input: NamedService) -> Result<One, Failure> {
        let (workspace, vm) = call.running(&input.workspace_id).await?;
        let service = find(&vm, &input.service_name).await?;
        Ok(One {
            workspace_id: workspace.id().to_owned(),
            service: service.stop().await?.into(),
        })
    }
}
