//! For arbitrary files and messages of other programs (records of workspaces, manifests of
//! snapshots, logs of receipts, policies, requests of models, answers of VMMs, messages
//! between programs of a user): reading them ends without a panic, what can be read is the
//! same after it was written and read again, and no error has control characters.
//!
//! The first byte of the input says which of them it is.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use vmcell::{
    fuzzing::{
        append_receipts, decide, read_api_reply, read_attach_messages, read_command,
        read_keeper_lines, read_manifest, read_monitor_replies, read_network_policy, read_receipts,
        read_record,
    },
    tool::ToolPolicy,
    workspace::CommandState,
};

/// The policy under which requests are decided about.
static POLICY: LazyLock<ToolPolicy> = LazyLock::new(|| {
    let text = include_str!("../corpus/state_files/seed-policy");
    ToolPolicy::from_toml(text.get(1..).unwrap_or_default()).expect("it is a policy")
});

fuzz_target!(|input: &[u8]| {
    let Some((&kind, bytes)) = input.split_first() else {
        return;
    };
    match kind {
        b'w' => check(read_record(bytes)),
        b'k' => drop(read_keeper_lines(bytes)),
        b'c' => {
            if let Some(command) = read_command(bytes) {
                assert_eq!(
                    command.state == CommandState::Interrupted,
                    command.ended.is_none()
                );
            }
        }
        b's' => check(read_manifest(bytes)),
        b'r' => receipts(bytes),
        b'n' => drop(read_network_policy(bytes)),
        b'p' => {
            if let Ok(text) = std::str::from_utf8(bytes) {
                check_lines(ToolPolicy::from_toml(text).map_err(|error| error.to_string()));
            }
        }
        b'q' => ["default", "agent", "nobody"]
            .into_iter()
            .for_each(|caller| check_lines(decide(&POLICY, caller, bytes))),
        b'a' => drop(read_attach_messages(bytes)),
        b'm' => {
            for text in read_monitor_replies(bytes) {
                check_lines(Err::<(), _>(text));
            }
        }
        b'h' => {
            if let Ok((_, body)) = read_api_reply(bytes) {
                assert!(body.len() <= bytes.len());
            }
        }
        _ => {}
    }
});

fn check<T>(read: Result<T, String>) {
    if let Err(text) = read {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}

/// Same for texts that may have several lines.
fn check_lines<T>(read: Result<T, String>) {
    if let Err(text) = read {
        let is_control = |character: char| character.is_control() && !"\n\t".contains(character);
        assert!(!text.contains(is_control), "{text:?}");
    }
}

/// The first line is the head, which is followed by the log; or all lines but the first
/// are what is in receipts.
fn receipts(bytes: &[u8]) {
    let place = bytes.iter().position(|byte| *byte == b'\n');
    let (head, log) = bytes.split_at(place.map_or(bytes.len(), |place| place + 1));
    let mut block = head.trim_ascii_end().to_vec();
    block.resize(block.len().max(512), b' ');
    read_receipts(&block, log);
    read_receipts(&[], log);
    let values = log.split(|byte| *byte == b'\n');
    let values = values.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    if let [low, high, to, ..] = *head {
        append_receipts(values, u16::from_le_bytes([low, high]).into(), to);
    }
}
