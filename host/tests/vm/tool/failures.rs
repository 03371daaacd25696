//! Calls that fail: M3 and M9, and that nothing is started for what is refused.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;
use vmcell::tool::{Retry, ToolFailure, ToolImage, ToolRequest};

use super::{Fixture, policy};
use crate::base;

#[tokio::test]
async fn nothing_is_started_for_what_is_refused() {
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let fixture = Fixture::with(policy(), |tool| {
        tool.environments(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Err::<std::path::PathBuf, _>("nothing is to be started")
        })
    });
    let attacks = [
        (
            json!({ "command": ["true"], "files": [{ "path": "/work/../x", "content": "" }] }),
            "invalid_request",
        ),
        (
            json!({ "command": ["true"], "timeout_seconds": -1 }),
            "invalid_request",
        ),
        (
            json!({ "command": ["true"], "host_network": true }),
            "invalid_request",
        ),
        (
            json!({ "command": ["true"], "state": { "retention": "cold" } }),
            "invalid_request",
        ),
        (
            json!({ "command": ["true"], "stdin": "a".repeat(64 << 20) }),
            "invalid_request",
        ),
        (
            json!({ "command": ["true"], "language": "/bin/sh" }),
            "invalid_request",
        ),
        // M3
        (
            json!({ "command": ["true"], "language": "cobol" }),
            "policy_denied",
        ),
        (
            json!({ "command": ["true"], "secrets": { "A": { "ref": "other" } } }),
            "policy_denied",
        ),
        (
            json!({
                "command": ["true"],
                "network": { "mode": "bridge", "allow": [{ "host": "a.test", "port": 1 }] },
            }),
            "policy_denied",
        ),
    ];
    let attack_count = attacks.len() as u64;
    for (request, expected) in attacks {
        let answer = fixture.run(request).await;
        assert_eq!(answer["failure"]["kind"], expected, "{answer:#}");
        // The shape of M8 in any case.
        for key in [
            "sandbox_id",
            "exit_code",
            "stdout",
            "stderr",
            "timed_out",
            "retention",
        ] {
            assert!(answer.get(key).is_some(), "{key}: {answer:#}");
        }
        let receipt = fixture.receipt(&answer);
        assert_eq!(
            (&receipt["kind"], &receipt["failure"]),
            (&json!("denied"), &json!(expected))
        );
        let decisions = receipt["decisions"].as_array().unwrap();
        assert_eq!(decisions.last().unwrap()["allowed"], false);
        assert_eq!(
            decisions.iter().filter(|it| it["allowed"] == false).count(),
            1
        );
    }
    let garbage = fixture.tool.run_json("default", b"{\"command\": [").await;
    assert!(
        matches!(garbage, Err(ToolFailure::Invalid { .. })),
        "{garbage:?}"
    );
    let stranger = fixture
        .tool
        .run_as("stranger", ToolRequest::new("small", ["true"]))
        .await;
    assert!(
        matches!(stranger, Err(ToolFailure::PolicyDenied { .. })),
        "{stranger:?}"
    );
    assert_eq!(started.load(Ordering::Relaxed), 0);
    assert_eq!(fixture.verified(), attack_count + 2);
}

#[tokio::test]
async fn the_six_failures_are_told_apart() {
    let missing = ToolImage::path("/nonexistent/image.ext4");
    let folder = Arc::new(std::sync::OnceLock::<std::path::PathBuf>::new());
    let log = folder.clone();
    let policy = policy().image("missing", missing).image(
        "cut",
        ToolImage {
            memory_mib: Some(128),
            ..ToolImage::environment("cut")
        },
    );
    let fixture = Fixture::with(policy, |tool| {
        tool.environments(move |name| {
            // Somebody cuts the log while the call runs.
            if name == "cut" {
                fs::write(log.get().unwrap(), "").unwrap();
            }
            Ok::<_, String>(base())
        })
    });
    folder
        .set(fixture.tool.receipts().folder().join("log"))
        .unwrap();
    let run = |request: ToolRequest| fixture.tool.run(request);

    let denied = run(ToolRequest::new("unknown", ["true"]))
        .await
        .unwrap_err();
    assert!(
        matches!(denied, ToolFailure::PolicyDenied { .. }),
        "{denied:?}"
    );
    assert_eq!(denied.retry(), Retry::AfterGrant);

    let invalid = run(ToolRequest::new("small", [""])).await.unwrap_err();
    assert!(
        matches!(invalid, ToolFailure::Invalid { .. }),
        "{invalid:?}"
    );
    assert_eq!(invalid.retry(), Retry::AfterChange);

    let mut request = ToolRequest::new("small", ["sh", "-c", "echo begun; sleep 1000"]);
    request.timeout_seconds = Some(2);
    let late = run(request).await.unwrap_err();
    assert!(matches!(late, ToolFailure::TimedOut { .. }), "{late:?}");
    assert_eq!(late.retry(), Retry::WithMoreTime);
    let result = late.result().unwrap();
    assert!(
        result.timed_out() && result.output.stdout == b"begun\n",
        "{result:?}"
    );

    // M10: the time of the sandbox as a whole.
    let mut request = ToolRequest::new("small", ["sleep", "1000"]);
    request.state.ttl_seconds = Some(3);
    let late = run(request).await.unwrap_err();
    assert!(
        matches!(late, ToolFailure::TimedOut { seconds: 3, .. }),
        "{late:?}"
    );

    for (command, code) in [
        (["sh", "-c", "exit 7"], Some(7)),
        (["/work/nothing", "", ""], None),
    ] {
        let failed = run(ToolRequest::new("small", command)).await.unwrap_err();
        assert!(
            matches!(failed, ToolFailure::GuestCommand { .. }),
            "{failed:?}"
        );
        assert_eq!(failed.retry(), Retry::AfterChange);
        assert_eq!(failed.result().unwrap().output.code(), code);
    }

    let lost = run(ToolRequest::new("missing", ["true"]))
        .await
        .unwrap_err();
    assert!(matches!(lost, ToolFailure::Transport { .. }), "{lost:?}");
    assert_eq!(lost.retry(), Retry::Later);
    // The guest ends its VM.
    let ended = ["sh", "-c", "reboot -f; sleep 1000"];
    let lost = run(ToolRequest::new("small", ended)).await.unwrap_err();
    assert!(matches!(lost, ToolFailure::Transport { .. }), "{lost:?}");
    assert_eq!(fixture.verified(), 8);

    let unclean = run(ToolRequest::new("cut", ["echo", "done"]))
        .await
        .unwrap_err();
    assert!(
        matches!(unclean, ToolFailure::Cleanup { .. }),
        "{unclean:?}"
    );
    assert_eq!(unclean.retry(), Retry::AfterCleanup);
    assert_eq!(unclean.result().unwrap().output.stdout, b"done\n");
    // Nothing is started while there cannot be a receipt.
    let refused = run(ToolRequest::new("small", ["true"])).await.unwrap_err();
    assert!(
        matches!(refused, ToolFailure::Transport { .. }),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("receipt verify"), "{refused}");
    assert_eq!(fixture.kept(), Vec::<String>::new());
}
