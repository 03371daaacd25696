//! The client that was written from the description of the protocol alone.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

use crate::client::RunningAgent;

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/examples/client.py");

/// Runs the client with this input.
fn run(agent: &RunningAgent, arguments: &[&str], input: &[u8]) -> Output {
    let mut client = Command::new("python3")
        .arg(CLIENT)
        .arg(agent.path())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 is missing: run `make setup`");
    let mut stdin = client.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A command that reads nothing closes the pipe early.
            let _ = stdin.write_all(input);
        });
        client.wait_with_output().unwrap()
    })
}

#[test]
fn it_runs_commands_and_forwards_their_streams() {
    let agent = RunningAgent::start();
    let output = run(&agent, &["echo", "hello"], b"");
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(0), &b"hello\n"[..])
    );
    let script = "echo out; echo err >&2; exit 7";
    let output = run(&agent, &["--", "sh", "-c", script], b"");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(
        (&output.stdout[..], &output.stderr[..]),
        (&b"out\n"[..], &b"err\n"[..])
    );
    // More than all windows, in both directions.
    let much: Vec<u8> = (0..5_000_000u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let output = run(&agent, &["cat"], &much);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == much, "{} bytes", output.stdout.len());
}

#[test]
fn it_reports_signals_and_failures() {
    let agent = RunningAgent::start();
    let output = run(&agent, &["sh", "-c", "kill -9 $$"], b"");
    assert_eq!(output.status.code(), Some(128 + 9));
    let output = run(&agent, &["no-such-program"], b"");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert!(text.contains("NotFound"), "{text}");
}

#[test]
fn it_shows_what_the_agent_can_do() {
    let agent = RunningAgent::start();
    let output = run(&agent, &["--ping"], b"");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("vmcell-agent "), "{text}");
    for capability in [
        "processes",
        "files",
        "terminals",
        "services",
        "ports",
        "trees",
    ] {
        assert!(text.lines().any(|line| line == capability), "{text}");
    }
}
