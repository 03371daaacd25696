use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    time::{Duration, SystemTime},
};

use proptest::prelude::*;
use serde_json::Value;

use super::{super::transcript::Transcript, *};
use crate::{
    process::Signal,
    terminal::{Prompt, Status, TerminalSize},
};

fn session() -> Session {
    Session {
        tag: "build".to_owned(),
        command: vec!["bash".to_owned(), "--norc".to_owned()],
        pid: 42,
        size: size(120),
        started: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
        ended: None,
        exit: None,
        status: Status::Running,
        prompt: Prompt::None,
    }
}

fn size(columns: u16) -> TerminalSize {
    TerminalSize { columns, rows: 30 }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_is_written_already_is_masked_in_its_place() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("session");
    let mut recorder = Recorder::create(&folder, &session()).unwrap();
    recorder.append_output(b"key: hunt").unwrap();
    recorder.flush().unwrap();
    recorder.append_output(b"er").unwrap();
    recorder.mask(6, 6, b'*').unwrap();
    recorder.append_output(b"* more").unwrap();
    // Ranges are clamped to the transcript.
    recorder.mask(u64::MAX, 1, b'K').unwrap();
    recorder.mask(1, 100, b'E').unwrap();
    recorder.flush().unwrap();
    let written = fs::read_to_string(folder.join("transcript.log")).unwrap();
    assert_eq!(written, "Key: ******* morE");
}

#[test]
fn records_outlive_the_session_and_are_for_nobody_else() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("some/where");
    let mut recorder = Recorder::create(&folder, &session()).unwrap();
    recorder.append_output(b"$ ls\r\n\xff").unwrap();
    recorder.log(&Interaction::run("ls")).unwrap();
    recorder.flush().unwrap();
    assert_eq!(
        fs::read(folder.join("transcript.log")).unwrap(),
        b"$ ls\r\n\xff"
    );
    recorder.append_output(b"more").unwrap();
    let ended = Session {
        status: Status::Eof,
        ended: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_001)),
        ..session()
    };
    recorder.save(&ended).unwrap();
    drop(recorder);

    assert_eq!(
        names(&folder),
        ["interaction.jsonl", "session.json", "transcript.log"]
    );
    assert_eq!(mode(&folder), 0o700);
    for name in names(&folder) {
        assert_eq!(mode(&folder.join(&name)), 0o600, "{name}");
    }
    assert_eq!(
        fs::read(folder.join("transcript.log")).unwrap(),
        b"$ ls\r\n\xffmore"
    );
    let saved = json(&fs::read_to_string(folder.join("session.json")).unwrap());
    assert_eq!(saved["tag"], "build");
    assert_eq!(saved["command"][1], "--norc");
    assert_eq!(saved["size"]["columns"], 120);
    assert_eq!(saved["started_ms"], 1_700_000_000_123_u64);
    assert_eq!(saved["ended_ms"], 1_700_000_001_000_u64);
    assert_eq!(saved["status"], "eof");
    assert_eq!(saved["exit"], Value::Null);
}

#[test]
fn interactions_are_one_object_a_line_and_tell_no_password() {
    let parent = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(parent.path(), &session()).unwrap();
    let long = "x".repeat(100_000);
    for interaction in [
        Interaction::run("echo 'two\nlines'"),
        Interaction::input(b"\x1b[A\xff"),
        Interaction::key(&"ctrl+c".parse().unwrap()),
        Interaction::paste(&long),
        Interaction::password(),
        Interaction::signal(Signal::INT),
        Interaction::resize(size(90)),
        Interaction::expect(Some("done.*")),
        Interaction::expect(None),
    ] {
        recorder.log(&interaction).unwrap();
    }
    let log = fs::read_to_string(parent.path().join("interaction.jsonl")).unwrap();
    assert!(log.len() < 10_000, "{}", log.len());
    let lines: Vec<Value> = log.lines().map(json).collect();
    let kinds: Vec<_> = lines
        .iter()
        .map(|line| line["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "run", "input", "key", "paste", "password", "signal", "resize", "expect", "expect"
        ]
    );
    assert!(lines.iter().all(|line| line["time_ms"].as_u64() > Some(0)));
    assert_eq!(lines[0]["text"], "echo 'two\nlines'");
    assert_eq!(lines[1]["text"], "\u{1b}[A\u{fffd}");
    assert_eq!(lines[2]["key"], "ctrl+c");
    assert_eq!(lines[3]["bytes"], 100_000);
    let password = lines[4].as_object().unwrap();
    let told: Vec<_> = password.keys().map(String::as_str).collect();
    assert_eq!(told, ["kind", "password", "time_ms"], "not even its length");
    assert_eq!(lines[6]["size"]["columns"], 90);
    assert_eq!(lines[8]["pattern"], Value::Null);
}

#[test]
fn a_folder_holds_the_records_of_one_session() {
    let folder = tempfile::tempdir().unwrap();
    drop(Recorder::create(folder.path(), &session()).unwrap());
    let before = names(folder.path());
    let error = Recorder::create(folder.path(), &session()).unwrap_err();
    assert!(matches!(error, RecordError::FolderInUse { .. }));
    assert!(
        error.to_string().ends_with("name another folder"),
        "{error}"
    );
    assert_eq!(names(folder.path()), before);
}

#[test]
fn nothing_is_left_behind_if_records_cannot_be_begun() {
    for taken in ["transcript.log", "interaction.jsonl", "session.json"] {
        let folder = tempfile::tempdir().unwrap();
        symlink("/nowhere", folder.path().join(taken)).unwrap();
        let error = Recorder::create(folder.path(), &session()).unwrap_err();
        assert!(
            matches!(error, RecordError::FolderInUse { .. }),
            "{taken}: {error}"
        );
        assert_eq!(names(folder.path()), [taken]);
    }
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    for folder in [file.clone(), file.join("beneath")] {
        let error = Recorder::create(&folder, &session()).unwrap_err();
        assert!(matches!(error, RecordError::Write { .. }), "{error}");
    }
    assert_eq!(names(parent.path()), ["file"]);
}

#[test]
fn a_folder_that_vanishes_is_an_error_and_no_panic() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("records");
    let recorder = Recorder::create(&folder, &session()).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let error = recorder.save(&session()).unwrap_err();
    assert!(error.to_string().contains("session.json"), "{error}");
}

fn cast(transcript: &Transcript) -> Vec<Value> {
    let mut out = Vec::new();
    let info = CastInfo {
        size: size(80),
        started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        title: Some("a \"title\""),
        term: "xterm-256color",
    };
    write_asciicast(transcript, &info, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(json).collect()
}

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn a_recording_has_the_form_of_asciicast() {
    let mut transcript = Transcript::new(1 << 20, 0);
    transcript.resized(size(100), at(0));
    transcript.push(b"$ \x1b[1mls\r\n\xe2\x82", at(2000));
    transcript.push(b"\xac\xff\xc3", at(2500));
    transcript.resized(size(120), at(3000));
    transcript.gap(7);
    transcript.push(b"x\xc3", at(4000));
    let lines = cast(&transcript);
    let header = serde_json::json!({
        "version": 2, "width": 100, "height": 30, "timestamp": 1_700_000_002,
        "title": "a \"title\"", "env": { "TERM": "xterm-256color" },
    });
    assert_eq!(lines[0], header);
    let events = serde_json::json!([
        [0.0, "o", "$ \u{1b}[1mls\r\n"],
        [0.5, "o", "€\u{fffd}"],
        [1.0, "r", "120x30"],
        [1.0, "o", "\u{fffd}"],
        [2.0, "m", "7 bytes are missing"],
        [2.0, "o", "x"],
        [2.0, "o", "\u{fffd}"],
    ]);
    assert_eq!(Value::from(&lines[1..]), events);
}

#[test]
fn an_empty_recording_is_a_recording() {
    let lines = cast(&Transcript::new(1 << 20, 0));
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["width"], 80);
}

proptest! {
    #[test]
    fn a_recording_holds_the_text_whatever_the_pieces(
        pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..20), 0..20_u64), 0..20),
    ) {
        let mut transcript = Transcript::new(1 << 20, 0);
        let mut time = 0;
        for (bytes, step) in &pieces {
            time += step;
            transcript.push(bytes, at(time));
        }
        let lines = cast(&transcript);
        let text: String = lines[1..].iter().map(|event| event[2].as_str().unwrap()).collect();
        let whole: Vec<u8> = pieces.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        prop_assert_eq!(text, String::from_utf8_lossy(&whole));
        prop_assert!(lines[1..].is_sorted_by_key(|event| event[0].as_f64()));
    }
}
