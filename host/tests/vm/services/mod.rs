//! Services in real VMs, and everything that can go wrong.

mod faults;
mod logs;
mod order;
mod published;
mod readiness;
mod restarts;
mod sharing;

use std::time::Duration;

use vmcell::{
    Command, Error, Vm,
    service::{Service, ServiceError, ServiceFailure, ServiceSpec, ServiceStatus},
};

/// Generous, because under emulation and beside other VMs anything may take
/// long.
const TEST_TIMEOUT: Duration = Duration::from_secs(240);

/// The command of a service that does nothing but run.
const IDLE: &str = "exec sleep 100000";

/// Fails if a future takes too long.
async fn within<T>(work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(TEST_TIMEOUT, work).await;
    done.expect("it takes too long")
}

fn shell(line: impl Into<String>) -> ServiceSpec {
    ServiceSpec::new(Command::shell(line.into()))
}

async fn start_service(vm: &Vm, name: &str, spec: ServiceSpec) -> Service {
    within(vm.services().start(name, spec)).await.unwrap()
}

async fn ready(service: &Service) -> ServiceStatus {
    within(service.ready()).await.unwrap()
}

/// Returns why a service does not become ready.
async fn failure(service: &Service) -> ServiceFailure {
    match within(service.ready()).await {
        Err(Error::Service(ServiceError::Failed(failure))) => *failure,
        other => panic!("{other:?}"),
    }
}

fn service_error<T: std::fmt::Debug>(result: Result<T, Error>) -> ServiceError {
    match result {
        Err(Error::Service(error)) => error,
        other => panic!("{other:?}"),
    }
}

async fn run(vm: &Vm, line: &str) -> String {
    let output = within(vm.exec_command(Command::shell(line))).await.unwrap();
    assert!(output.success(), "{line}: {output:?}");
    output.stdout_text()
}

/// Waits until no process of the guest has these arguments.
async fn wait_gone(vm: &Vm, arguments: &str) {
    // The brackets keep the search from finding itself.
    let (first, rest) = arguments.split_at(1);
    let line = format!("ps -o args | grep -c '[{first}]{rest}' || true");
    within(async { while run(vm, &line).await.trim() != "0" {} }).await;
}
