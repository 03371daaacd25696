//! The life cycle of a VM.

use super::{
    check::{CheckResult, ensure, ensure_eq, ensure_error_code},
    context::CheckContext,
};
use crate::vm::{End, VmState};

pub(super) async fn runs(context: CheckContext) -> CheckResult {
    ensure_eq("the state", context.vm.state(), VmState::Running)?;
    ensure(!context.vm.id().is_empty(), || "the id is empty".to_owned())?;
    ensure_eq(
        "what echo prints",
        context.shell("echo hello").await?,
        "hello\n".to_owned(),
    )
}

pub(super) async fn health(context: CheckContext) -> CheckResult {
    let health = context.vm.health().await;
    ensure(health.is_healthy(), || {
        format!("it is unhealthy: {health:?}")
    })?;
    ensure(!health.backend.is_empty(), || {
        "the backend has no name".to_owned()
    })?;
    ensure(!health.agent.is_empty(), || {
        "the agent has no name".to_owned()
    })
}

/// Two VMs have separate ids, files and processes. The second one is ended by
/// dropping it.
pub(super) async fn isolation(context: CheckContext) -> CheckResult {
    let other = context.start().await?;
    ensure(other.id() != context.vm.id(), || {
        format!("both are {}", other.id())
    })?;
    context.shell("echo mine > /tmp/stranger").await?;
    let files = other.files();
    ensure_eq(
        "the other's file",
        files.exists("/tmp/stranger").await?,
        false,
    )?;
    drop(other);
    ensure_eq(
        "what echo prints",
        context.shell("echo still here").await?,
        "still here\n".to_owned(),
    )
}

pub(super) async fn destroyed_twice(context: CheckContext) -> CheckResult {
    let vm = context.start().await?;
    vm.stop().await?;
    ensure_eq("the end", vm.ended().await.reason, End::Stopped)?;
    vm.stop().await?;
    vm.kill().await?;
    ensure_eq("the end", vm.ended().await.reason, End::Stopped)
}

pub(super) async fn used_after_destroy(context: CheckContext) -> CheckResult {
    let vm = context.start().await?;
    let running = vm.exec_stream(crate::process::Command::new("cat").stdin_stream())?;
    vm.kill().await?;
    ensure_error_code(
        "a command under way",
        running.wait_with_output().await,
        "gone",
    )?;
    ensure_error_code("exec", vm.exec(["true"]).await, "gone")?;
    ensure_error_code(
        "reading a file",
        vm.files().read("/etc/passwd").await,
        "gone",
    )?;
    ensure_error_code("dialling", vm.ports().dial(1).await, "gone")?;
    ensure(!vm.health().await.is_healthy(), || {
        "it is reported healthy".to_owned()
    })
}
