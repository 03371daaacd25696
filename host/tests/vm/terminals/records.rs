//! Records of sessions on the host.

use std::os::unix::fs::PermissionsExt;

use vmcell::{
    Command, Error,
    terminal::{TerminalOptions, Unread},
};

use super::{open, wait_for_prompt};
use crate::start;

#[tokio::test]
async fn a_session_is_written_down_and_its_records_outlive_it() {
    let vm = start().await;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("session");
    let terminal = open(&vm, TerminalOptions::new().tag("kept").record(&folder)).await;
    wait_for_prompt(&terminal).await;
    terminal.run("echo hello; read -s x").await.unwrap();
    terminal.send_password("hunter2-hunter2").await.unwrap();
    terminal.run("exit 3").await.unwrap();
    terminal.wait().await.unwrap();
    let raw = terminal.read(0).await.unwrap().raw;
    assert_eq!(terminal.records(), Some(folder.clone()));
    drop(terminal);
    vm.kill().await.unwrap();

    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("transcript.log").as_bytes(), &raw[..]);
    let log = read("interaction.jsonl");
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<_> = lines
        .iter()
        .map(|line| line["kind"].as_str().unwrap())
        .collect();
    assert!(
        kinds.contains(&"run") && kinds.contains(&"password"),
        "{kinds:?}"
    );
    let session: serde_json::Value = serde_json::from_str(&read("session.json")).unwrap();
    assert_eq!(session["tag"], "kept");
    for name in ["transcript.log", "interaction.jsonl", "session.json"] {
        assert!(!read(name).contains("hunter2"), "{name}");
        let mode = std::fs::metadata(folder.join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn every_byte_is_written_down_however_fast_it_comes() {
    let vm = start().await;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("session");
    let command = Command::shell("stty raw; seq 1 300000");
    let options = TerminalOptions::command(command)
        .unread(Unread::Kept)
        .transcript_limit(4096)
        .record(&folder);
    let terminal = open(&vm, options).await;
    terminal.wait().await.unwrap();
    let written = std::fs::read_to_string(folder.join("transcript.log")).unwrap();
    let mut numbers = written.lines();
    for number in 1..=300_000u32 {
        assert_eq!(numbers.next().unwrap().parse(), Ok(number));
    }
    assert_eq!(numbers.next(), None);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_folder_that_holds_a_session_is_not_written_over() {
    let vm = start().await;
    let parent = tempfile::tempdir().unwrap();
    let options = TerminalOptions::new().record(parent.path().join("session"));
    let first = open(&vm, options.clone()).await;
    let error = vm.terminals().open(options).await.unwrap_err();
    assert!(matches!(error, Error::Host { .. }), "{error:?}");
    // The program that was started is removed.
    let list = vm.terminals().list().await.unwrap();
    assert_eq!(list.len(), 1, "{list:?}");
    assert_eq!(list[0].id, first.id());
    vm.kill().await.unwrap();
}
