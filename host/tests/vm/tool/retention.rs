//! What is kept, and how long: M7.

use std::{
    os::unix::fs::MetadataExt as _,
    time::{Duration, Instant},
};

use serde_json::json;
use vmcell::{
    Command,
    workspace::{WorkspaceState, Workspaces},
};

use super::{Fixture, policy};

#[tokio::test]
async fn what_is_kept_can_be_used_until_its_time_is_over() {
    let fixture = Fixture::new(policy());
    let workspaces = Workspaces::at(fixture.folder.path()).unwrap();
    let request = |state| json!({ "command": ["sh", "-c", "echo kept > file"], "state": state });

    let stopped = fixture.run(request(json!({ "retention": "stop" }))).await;
    assert_eq!(stopped["failure"], json!(null), "{stopped:#}");
    let workspace = workspaces
        .get(stopped["sandbox_id"].as_str().unwrap())
        .await
        .unwrap();
    let info = workspace.info().await.unwrap();
    assert_eq!(info.state, WorkspaceState::Stopped);
    // Nothing stays for ever.
    assert!(info.expires.is_some() && stopped["expires_at"].is_string());

    let state = json!({ "retention": "snapshot", "ttl_seconds": 3600, "name": "review" });
    let saved = fixture.run(request(state)).await;
    let workspace = workspaces
        .get(saved["sandbox_id"].as_str().unwrap())
        .await
        .unwrap();
    let snapshots = workspace.snapshots().await.unwrap();
    assert!(snapshots.iter().any(|it| it.name == "review"), "{saved:#}");

    let state = json!({ "retention": "cold", "ttl_seconds": 3600 });
    let background = "echo kept > file; sleep 100000 > /dev/null 2>&1 & echo begun";
    let cold = json!({ "command": ["sh", "-c", background], "state": state });
    let cold = fixture.run(cold).await;
    assert_eq!(cold["stdout"], "begun\n", "{cold:#}");
    let id = cold["sandbox_id"].as_str().unwrap();
    let workspace = workspaces.get(id).await.unwrap();
    assert_eq!(
        workspace.info().await.unwrap().state,
        WorkspaceState::Paused
    );
    let folder = fixture.folder.path().join("workspaces");
    for folder in [
        folder.clone(),
        folder.join(id),
        fixture.folder.path().join("receipts"),
    ] {
        assert_eq!(
            folder.metadata().unwrap().mode() & 0o777,
            0o700,
            "{folder:?}"
        );
    }
    // Its memory goes on.
    workspace.start().await.unwrap();
    let command = Command::shell("cat /work/file").timeout(Duration::from_secs(240));
    assert_eq!(workspace.exec(command).await.unwrap().stdout, b"kept\n");
    workspace.stop().await.unwrap();

    // The next run of anything deletes what is too old.
    let state = json!({ "retention": "stop", "ttl_seconds": 1 });
    let old = fixture.run(request(state)).await;
    let old = old["sandbox_id"].as_str().unwrap().to_owned();
    let began = Instant::now();
    while fixture.kept().contains(&old) {
        assert!(began.elapsed() < Duration::from_secs(120));
        let next = fixture.run(json!({ "command": ["true"] })).await;
        assert_eq!(next["exit_code"], 0, "{next:#}");
        // From a template, and from a workspace.
        assert_eq!(
            fixture.receipt(&next)["image"],
            fixture.receipt(&cold)["image"]
        );
    }
    assert_eq!(fixture.kept().len(), 3);
    let receipt = fixture.receipt(&cold);
    assert_eq!(
        (&receipt["retention"], &receipt["ttl_seconds"]),
        (&json!("cold"), &json!(3600))
    );
    fixture.verified();
}
