//! The client of the SDK, with the newest protocol and with the one before, which begins with
//! `initialize`.
#![expect(deprecated, reason = "clients of both protocols ask for log messages")]

use std::{fs, io::Write as _, process::Stdio, time::Duration};

use futures_util::future::join_all;
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt as _, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, LoggingLevel,
        LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion,
        RequestMetaObject, ServerNotification, ServerResult, SetLevelRequestParams,
        SubscriptionFilter,
    },
    service::{NotificationContext, PeerRequestOptions, RequestHandle, RunningService},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::client::State;

/// Long enough for a VM to boot on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What the server sends by itself.
struct Heard {
    progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    logs: mpsc::UnboundedReceiver<LoggingMessageNotificationParam>,
}

struct Listener {
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
    logs: mpsc::UnboundedSender<LoggingMessageNotificationParam>,
}

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let _ = self.progress.send(progress);
    }

    async fn on_logging_message(
        &self,
        log: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let _ = self.logs.send(log);
    }
}

struct Client {
    service: RunningService<RoleClient, Listener>,
    server: tokio::process::Child,
}

fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

async fn connect(state: &State, options: &[&str], mode: ClientLifecycleMode) -> (Client, Heard) {
    let serve = ["mcp", "serve"].into_iter().chain(options.iter().copied());
    let mut command = tokio::process::Command::from(state.cli(serve).into_command());
    command.stderr(Stdio::inherit()).kill_on_drop(true);
    let mut server = command.spawn().unwrap();
    let streams = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
    let (progress, progress_heard) = mpsc::unbounded_channel();
    let (logs, logs_heard) = mpsc::unbounded_channel();
    let listener = Listener { progress, logs };
    let service = listener.serve_with_lifecycle(streams, mode).await.unwrap();
    let heard = Heard {
        progress: progress_heard,
        logs: logs_heard,
    };
    (Client { service, server }, heard)
}

impl Client {
    /// Begins a call of a tool, which asks for log messages.
    async fn begin(&self, tool: &'static str, arguments: Value) -> RequestHandle<RoleClient> {
        let arguments = arguments.as_object().unwrap().clone();
        let call = CallToolRequestParams::new(tool).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call));
        let mut options = PeerRequestOptions::no_options();
        let mut meta = RequestMetaObject::new();
        meta.set_log_level(LoggingLevel::Info);
        options.meta = Some(meta);
        let begun = self.service.send_cancellable_request(request, options);
        begun.await.unwrap()
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> Value {
        let handle = self.begin(tool, arguments).await;
        let answer = tokio::time::timeout(TIMEOUT, handle.await_response()).await;
        let ServerResult::CallToolResult(result) = answer.unwrap().unwrap() else {
            panic!("{tool} has another answer");
        };
        assert_eq!(result.is_error, Some(false), "{tool}: {result:?}");
        result.structured_content.unwrap()
    }

    async fn create(&self) -> String {
        let created = self.call("workspace_create", json!({ "mem_mib": 128 }));
        created.await["workspace_id"].as_str().unwrap().to_owned()
    }

    /// Waits until no program with this argument runs in a workspace.
    async fn until_gone(&self, workspace: &str, argument: &str) {
        let line = format!("while ps -o args | grep -q '^[s]leep {argument}'; do sleep 0.1; done");
        let arguments = json!({ "workspace_id": workspace, "command": line });
        assert_eq!(self.call("workspace_exec", arguments).await["exit_code"], 0);
    }

    /// Deletes a workspace, and waits for the end of the server.
    async fn end(mut self, workspace: &str) {
        let deleted = json!({ "workspace_id": workspace });
        self.call("workspace_delete", deleted).await;
        self.service.cancel().await.unwrap();
        let ended = tokio::time::timeout(TIMEOUT, self.server.wait()).await;
        assert_eq!(ended.unwrap().unwrap().code(), Some(0));
    }
}

async fn next<T>(events: &mut mpsc::UnboundedReceiver<T>) -> T {
    let event = tokio::time::timeout(TIMEOUT, events.recv()).await;
    event.unwrap().unwrap()
}

#[tokio::test]
async fn a_call_is_logged_watched_and_cancelled() {
    for mode in [newest(), ClientLifecycleMode::Initialize] {
        let state = State::new();
        let (client, mut heard) = connect(&state, &[], mode.clone()).await;
        if mode == ClientLifecycleMode::Initialize {
            let level = SetLevelRequestParams::new(LoggingLevel::Debug);
            client.service.set_level(level).await.unwrap();
        }
        let id = client.create().await;
        let line = "echo begun; echo wrong >&2; sleep 1111";
        let sleeping = json!({ "workspace_id": id, "command": line, "timeout_seconds": 500 });
        let handle = client.begin("workspace_exec", sleeping).await;
        for (output, text) in [("stdout", "begun\n"), ("stderr", "wrong\n")] {
            let log = next(&mut heard.logs).await;
            assert_eq!(log.logger.as_deref(), Some("workspace_exec"));
            let expected = json!({
                "request_id": handle.id, "output": output, "text": text, "omitted_bytes": 0,
            });
            assert_eq!(log.data, expected);
        }
        let mut last = 0.0;
        for _ in 0..2 {
            let report = loop {
                let report = next(&mut heard.progress).await;
                if report.progress_token == handle.progress_token {
                    break report;
                }
            };
            assert!(
                report.progress > last && report.total > Some(499.0),
                "{report:?}"
            );
            let message = report.message.unwrap();
            assert!(message.starts_with("running the command ("), "{message}");
            last = report.progress;
        }
        handle.cancel(Some("not needed".to_owned())).await.unwrap();
        client.until_gone(&id, "1111").await;
        client.end(&id).await;
    }
}

#[tokio::test]
async fn calls_at_once_are_answered_and_cancelled_each_for_itself() {
    let state = State::new();
    let (client, _heard) = connect(&state, &[], newest()).await;
    let id = client.create().await;
    let sleeping = (0..8).map(|_| {
        let command = json!(["sleep", "2222"]);
        let sleeping = json!({ "workspace_id": id, "command": command, "timeout_seconds": 500 });
        client.begin("workspace_exec", sleeping)
    });
    let sleeping = join_all(sleeping).await;
    let echoes = join_all((0..32).map(|number| {
        let echo = json!({ "workspace_id": id, "command": ["echo", number.to_string()] });
        client.call("workspace_exec", echo)
    }));
    let cancelling = join_all(sleeping.into_iter().map(|handle| handle.cancel(None)));
    let (echoes, cancelled) = tokio::join!(echoes, cancelling);
    for (number, echo) in echoes.iter().enumerate() {
        assert_eq!(echo["stdout"], format!("{number}\n"), "{echo}");
    }
    assert!(cancelled.iter().all(Result::is_ok), "{cancelled:?}");
    client.until_gone(&id, "2222").await;
    client.end(&id).await;
}

#[tokio::test]
async fn copies_say_how_far_they_are() {
    let state = State::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let (client, mut heard) = connect(&state, &["--allow-path", path], newest()).await;
    let id = client.create().await;
    let mut file = fs::File::create(folder.path().join("large")).unwrap();
    // Until it takes longer than the time between two reports.
    let message = loop {
        file.write_all(&vec![b'x'; 64 << 20]).unwrap();
        assert!(file.metadata().unwrap().len() < 4 << 30, "no report");
        let push = json!({ "workspace_id": id, "source_path": path });
        client.call("workspace_sync_push", push).await;
        let mut messages = std::iter::from_fn(|| heard.progress.try_recv().ok()?.message);
        if let Some(message) = messages.find(|message| message.starts_with("copied ")) {
            break message;
        }
    };
    assert!(message.contains(" entries, "), "{message}");
    client.end(&id).await;
}

#[tokio::test]
async fn changes_of_files_are_heard_of() {
    let state = State::new();
    let (client, _heard) = connect(&state, &[], newest()).await;
    let id = client.create().await;
    let uri = format!("vmcell://{id}/");
    let filter = SubscriptionFilter::builder()
        .tools_list_changed()
        .resource_subscriptions([uri.as_str(), "file:///etc/passwd"])
        .build();
    let mut listening = client.service.listen(filter).await.unwrap();
    let expected = SubscriptionFilter::builder()
        .resource_subscription(&uri)
        .build();
    assert_eq!(*listening.acknowledged(), expected);
    // The acknowledgement precedes the watch: changes go on until one is heard of.
    let mut number = 0;
    let update = loop {
        number += 1;
        let write = json!({ "workspace_id": id, "path": "new.txt", "text": number.to_string() });
        client.call("workspace_file_write", write).await;
        let heard = tokio::time::timeout(Duration::from_millis(200), listening.next()).await;
        if let Ok(heard) = heard {
            break heard.unwrap().unwrap();
        }
    };
    let ServerNotification::ResourceUpdatedNotification(update) = update else {
        panic!("{update:?}");
    };
    assert_eq!(update.params.uri, uri);
    drop(listening);

    let nowhere = SubscriptionFilter::builder()
        .resource_subscription("vmcell://nowhere/")
        .build();
    let mut listening = client.service.listen(nowhere).await.unwrap();
    let error = tokio::time::timeout(TIMEOUT, listening.next()).await;
    let error = error.unwrap().unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
    client.end(&id).await;
}
