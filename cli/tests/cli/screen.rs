//! `vmcell screen`.

use std::fs;

use serde_json::json;

use crate::{shared_vm::SharedVm, user::User};

/// Opens a terminal whose program prints something and sleeps, and detaches.
fn drawn(shared: &SharedVm, tag: &str, drawing: &str) {
    let script = format!("printf '{drawing}'; exec sleep 1000");
    let arguments = ["shell", &shared.id, "--tag", tag, "--", "sh", "-c", &script];
    let mut user = User::run(arguments);
    user.sees("waits");
    user.types("\x1d");
    assert_eq!(user.finish().code, 0);
}

#[test]
fn a_screen_is_shown_as_text_picture_and_json() {
    let shared = SharedVm::start("screen");
    let lines =
        r"\033]2;a title\007old\n\033[2J\033[H\033[1;31mred\033[0m & <plain> 日本\nit waits";
    drawn(&shared, "drawn", lines);

    let text = shared.cli("screen", ["drawn"]).finish();
    text.assert_printed("red & <plain> 日本\nit waits\n");

    let svg = shared.cli("screen", ["drawn", "--svg"]).finish();
    assert_eq!((svg.code(), svg.stderr.as_str()), (0, ""));
    assert!(svg.stdout().starts_with("<svg"), "{svg:?}");
    assert!(svg.stdout().contains("&lt;plain&gt;"), "{svg:?}");

    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("screen.png");
    let path = png.to_str().unwrap();
    shared
        .cli("screen", ["drawn", "--png", path])
        .finish()
        .assert_printed("");
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG\r\n"));

    let parsed = shared.cli("screen", ["drawn", "--json"]).finish().json();
    assert_eq!(parsed["tag"], "drawn", "{parsed}");
    assert_eq!(parsed["text"], "red & <plain> 日本\nit waits");
    assert_eq!(parsed["size"], json!({ "columns": 80, "rows": 24 }));
    assert_eq!(
        parsed["cursor"],
        json!({ "row": 1, "column": 8, "visible": true })
    );
    assert_eq!(parsed["title"], "a title");
    assert_eq!(parsed["alternate"], false);
    assert_eq!(parsed["status"], "running");
    assert_eq!(parsed["health"], "good");
    assert_eq!(parsed["foreground_command"], "sleep");
}

#[test]
fn lines_that_have_left_the_screen_are_shown_when_asked_for() {
    let shared = SharedVm::start("scrollback");
    let script = "seq 100; echo waits; exec sleep 1000";
    let arguments = [
        "shell", &shared.id, "--tag", "long", "--", "sh", "-c", script,
    ];
    let mut user = User::run(arguments);
    user.sees("waits");
    user.types("\x1d");
    assert_eq!(user.finish().code, 0);
    let ended = shared.cli("screen", ["long"]).finish();
    assert!(ended.stdout().starts_with("79\n80\n"), "{ended:?}");
    let ended = shared.cli("screen", ["long", "--scrollback", "2"]).finish();
    assert!(ended.stdout().starts_with("77\n78\n79\n"), "{ended:?}");
    let ended = shared
        .cli("screen", ["long", "--scrollback", "2", "--json"])
        .finish();
    assert_eq!(ended.json()["scrollback"], json!(["77", "78"]));
}

/// `screen` only reads: nothing is typed, answered or resized.
#[test]
fn a_terminal_does_not_notice_that_it_is_looked_at() {
    let shared = SharedVm::start("unnoticed");
    // The terminal's query was answered while the user was attached. Any later
    // answer would be echoed, like everything typed.
    let script = r"stty -icanon -echo; printf 'it waits\033[6n'
        dd bs=1 count=6 of=/dev/null 2>/dev/null; stty echo; printf ' for '; exec sleep 1000";
    let arguments = [
        "shell", &shared.id, "--tag", "shy", "--", "sh", "-c", script,
    ];
    let mut user = User::run(arguments);
    user.sees("it waits for ");
    user.types("keys");
    user.sees("keys");
    user.types("\x1d");
    assert_eq!(user.finish().code, 0);
    for _ in 0..3 {
        let ended = shared.cli("screen", ["shy"]).finish();
        ended.assert_printed("it waits for keys\n");
    }
    let size = shared.cli("screen", ["shy", "--json"]).finish().json()["size"].clone();
    assert_eq!(size, json!({ "columns": 80, "rows": 24 }));
}

#[test]
fn what_is_no_terminal_is_told_with_those_there_are() {
    let shared = SharedVm::start("unknown");
    let ended = shared.cli("screen", ["work"]).finish();
    ended.assert_failed(125, "is not a terminal of the VM: it has no terminals");
    drawn(&shared, "one", "waits");
    drawn(&shared, "two", "waits");
    let ended = shared.cli("screen", ["work"]).finish();
    ended.assert_failed(125, "one, two");
    assert!(shared.process("work").is_none());
    let ended = shared.cli("screen", ["main"]).finish();
    ended.assert_failed(125, "one, two");
    let ended = shared
        .cli("screen", ["one", "--png", "/no/such/folder/a.png"])
        .finish();
    ended.assert_failed(125, "/no/such/folder/a.png");
}
