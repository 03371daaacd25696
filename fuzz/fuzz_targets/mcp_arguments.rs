//! For arbitrary lines of a client of the MCP server, and any split of them: the server goes
//! on, each line that it sends is a message, no request has two answers, and no error has
//! control characters. The tools work on an empty folder; those that boot VMs only read their
//! arguments.
//!
//! The input is read as
//!
//! ```text
//! byte   0                         1 ..
//!        size of a piece; with     lines, or the arguments of the tool
//!        bit 7, a tool's number    that has this number
//! ```
#![no_main]

use std::{collections::HashSet, path::PathBuf, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use vmcell_mcp::{McpServer, fuzzing::serve};

/// A folder without workspaces.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let name = format!("vmcell-fuzz-mcp-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
    folder
});

/// The names of all tools.
static TOOLS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let server = McpServer::builder()
        .workspaces(store())
        .vms(store())
        .build();
    let tools = server.expect("a server can be made").tools();
    tools
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect()
});

fn store() -> vmcell::workspace::Workspaces {
    vmcell::workspace::Workspaces::at(FOLDER.join("tools")).expect("it can be made")
}

fuzz_target!(|input: &[u8]| {
    let Some((&first, rest)) = input.split_first() else {
        return;
    };
    if first < 0x80 {
        return check(rest, usize::from(first).max(1));
    }
    let tool = &TOOLS[usize::from(first & 0x7f) % TOOLS.len()];
    let head = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":""#;
    let head = format!("{head}{tool}\",\"arguments\":");
    let rest: Vec<u8> = rest.iter().copied().filter(|byte| *byte != b'\n').collect();
    check(&[head.as_bytes(), &rest, b"}}"].concat(), usize::MAX);
});

fn check(lines: &[u8], piece: usize) {
    const PING: &str = "the-last-ping-of-a-fuzz-target";
    if String::from_utf8_lossy(lines).contains(PING) {
        return;
    }
    let (answers, is_alive) = serve(lines, piece, PING, &FOLDER);
    assert!(is_alive, "the server has ended");
    let mut answered = HashSet::new();
    for line in answers {
        let message: Value = serde_json::from_slice(&line).expect("it is JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        if let Some(error) = message.get("error") {
            let text = error["message"].as_str().expect("an error has a message");
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
        let result = &message["result"];
        if result["isError"] == true {
            let error = &result["structuredContent"]["error"];
            let text = error["message"].as_str().expect("a failure has a message");
            assert!(!text.chars().any(char::is_control), "{text:?}");
            assert!(error["code"].as_str().is_some_and(|code| !code.is_empty()));
        }
        // A client may use an id again when it has an answer.
        if let Some(id) = message.get("id").filter(|id| !id.is_null()) {
            let count = count_ids(lines, id);
            assert!(
                answered.insert(id.to_string()) || count > 1,
                "two answers for {id}"
            );
        }
    }
}

/// Returns how many lines may have this id.
fn count_ids(lines: &[u8], id: &Value) -> usize {
    let lines = lines.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line.trim_ascii()).ok());
    messages
        .filter(|message| message.get("id") == Some(id))
        .count()
}
