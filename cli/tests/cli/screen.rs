//! `vmcell screen`.

use std::fs;

use serde_json::json;

use crate::{keeper::Keeper, user::User};

/// Opens a terminal whose program prints something and sleeps, and detaches.
fn drawn(keeper: &Keeper, tag: &str, drawing: &str) {
    let script = format!("printf '{drawing}'; exec sleep 1000");
    let arguments = ["shell", &keeper.id, "--tag", tag, "--", "sh", "-c", &script];
    let mut user = User::run(arguments);
    user.sees("waits");
    user.types("\x1d");
    assert_eq!(user.left().code, 0);
}

#[test]
fn a_screen_is_shown_as_text_picture_and_json() {
    let keeper = Keeper::start("screen");
    let lines =
        r"\033]2;a title\007old\n\033[2J\033[H\033[1;31mred\033[0m & <plain> 日本\nit waits";
    drawn(&keeper, "drawn", lines);

    let text = keeper.visit("screen", ["drawn"]).finish();
    text.assert_printed("red & <plain> 日本\nit waits\n");

    let svg = keeper.visit("screen", ["drawn", "--svg"]).finish();
    assert_eq!((svg.code(), svg.stderr.as_str()), (0, ""));
    assert!(svg.stdout().starts_with("<svg"), "{svg:?}");
    assert!(svg.stdout().contains("&lt;plain&gt;"), "{svg:?}");

    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("screen.png");
    let path = png.to_str().unwrap();
    keeper
        .visit("screen", ["drawn", "--png", path])
        .finish()
        .assert_printed("");
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG\r\n"));

    let told = keeper.visit("screen", ["drawn", "--json"]).finish().json();
    assert_eq!(told["tag"], "drawn", "{told}");
    assert_eq!(told["text"], "red & <plain> 日本\nit waits");
    assert_eq!(told["size"], json!({ "columns": 80, "rows": 24 }));
    assert_eq!(
        told["cursor"],
        json!({ "row": 1, "column": 8, "visible": true })
    );
    assert_eq!(told["title"], "a title");
    assert_eq!(told["alternate"], false);
    assert_eq!(told["status"], "running");
    assert_eq!(told["health"], "good");
    assert_eq!(told["foreground_command"], "sleep");
}

#[test]
fn lines_that_have_left_the_screen_are_shown_when_asked_for() {
    let keeper = Keeper::start("scrollback");
    let script = "seq 100; echo waits; exec sleep 1000";
    let arguments = [
        "shell", &keeper.id, "--tag", "long", "--", "sh", "-c", script,
    ];
    let mut user = User::run(arguments);
    user.sees("waits");
    user.types("\x1d");
    assert_eq!(user.left().code, 0);
    let ended = keeper.visit("screen", ["long"]).finish();
    assert!(ended.stdout().starts_with("79\n80\n"), "{ended:?}");
    let ended = keeper
        .visit("screen", ["long", "--scrollback", "2"])
        .finish();
    assert!(ended.stdout().starts_with("77\n78\n79\n"), "{ended:?}");
    let ended = keeper
        .visit("screen", ["long", "--scrollback", "2", "--json"])
        .finish();
    assert_eq!(ended.json()["scrollback"], json!(["77", "78"]));
}

/// `screen` only reads: nothing is typed, answered or resized.
#[test]
fn a_terminal_does_not_notice_that_it_is_looked_at() {
    let keeper = Keeper::start("unnoticed");
    // The terminal's query was answered while the user was attached. Any later
    // answer would be echoed, like everything typed.
    let script = r"stty -icanon -echo; printf 'it waits\033[6n'
        dd bs=1 count=6 of=/dev/null 2>/dev/null; stty echo; printf ' for '; exec sleep 1000";
    let arguments = [
        "shell", &keeper.id, "--tag", "shy", "--", "sh", "-c", script,
    ];
    let mut user = User::run(arguments);
    user.sees("it waits for ");
    user.types("keys");
    user.sees("keys");
    user.types("\x1d");
    assert_eq!(user.left().code, 0);
    for _ in 0..3 {
        let ended = keeper.visit("screen", ["shy"]).finish();
        ended.assert_printed("it waits for keys\n");
    }
    let size = keeper.visit("screen", ["shy", "--json"]).finish().json()["size"].clone();
    assert_eq!(size, json!({ "columns": 80, "rows": 24 }));
}

#[test]
fn what_is_no_terminal_is_told_with_those_there_are() {
    let keeper = Keeper::start("unknown");
    let ended = keeper.visit("screen", ["work"]).finish();
    ended.assert_failed(125, "is not a terminal of the VM: it has no terminals");
    drawn(&keeper, "one", "waits");
    drawn(&keeper, "two", "waits");
    let ended = keeper.visit("screen", ["work"]).finish();
    ended.assert_failed(125, "one, two");
    assert!(keeper.process("work").is_none());
    let ended = keeper.visit("screen", ["main"]).finish();
    ended.assert_failed(125, "one, two");
    let ended = keeper
        .visit("screen", ["one", "--png", "/no/such/folder/a.png"])
        .finish();
    ended.assert_failed(125, "/no/such/folder/a.png");
}
