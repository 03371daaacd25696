//! From start to end.

use super::{
    scene::Scene,
    unmet::{Seen, demand, refused, same},
};
use crate::vm::{End, VmState};

pub(super) async fn runs(scene: Scene) -> Seen {
    same("the state", scene.vm.state(), VmState::Running)?;
    demand(!scene.vm.id().is_empty(), || "the id is empty".to_owned())?;
    same(
        "what echo prints",
        scene.shell("echo hello").await?,
        "hello\n".to_owned(),
    )
}

pub(super) async fn health(scene: Scene) -> Seen {
    let health = scene.vm.health().await;
    demand(health.is_healthy(), || {
        format!("it is not well: {health:?}")
    })?;
    demand(!health.backend.is_empty(), || {
        "the backend has no name".to_owned()
    })?;
    demand(!health.agent.is_empty(), || {
        "the agent has no name".to_owned()
    })
}

/// Two VMs have ids, files and processes of their own. The second one is ended
/// by dropping it.
pub(super) async fn strangers(scene: Scene) -> Seen {
    let other = scene.start().await?;
    demand(other.id() != scene.vm.id(), || {
        format!("both are {}", other.id())
    })?;
    scene.shell("echo mine > /tmp/stranger").await?;
    let files = other.files();
    same(
        "the other's file",
        files.exists("/tmp/stranger").await?,
        false,
    )?;
    drop(other);
    same(
        "what echo prints",
        scene.shell("echo still here").await?,
        "still here\n".to_owned(),
    )
}

pub(super) async fn destroyed_twice(scene: Scene) -> Seen {
    let vm = scene.start().await?;
    vm.stop().await?;
    same("the end", vm.ended().await.reason, End::Stopped)?;
    vm.stop().await?;
    vm.kill().await;
    same("the end", vm.ended().await.reason, End::Stopped)
}

pub(super) async fn used_after_destroy(scene: Scene) -> Seen {
    let vm = scene.start().await?;
    let running = vm.exec_stream(crate::process::Command::new("cat").stdin_stream())?;
    vm.kill().await;
    refused(
        "a command under way",
        running.wait_with_output().await,
        "gone",
    )?;
    refused("exec", vm.exec(["true"]).await, "gone")?;
    refused(
        "reading a file",
        vm.files().read("/etc/passwd").await,
        "gone",
    )?;
    refused("dialling", vm.ports().dial(1).await, "gone")?;
    demand(!vm.health().await.is_healthy(), || {
        "it is said to be well".to_owned()
    })
}
