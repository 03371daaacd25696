//! What the fuzz target `state_files` reaches.

use std::{path::Path, time::SystemTime};

use super::{
    CommandRecord,
    deadlines::due,
    keeper_messages::{KeeperReport, KeeperRequest, read_line},
    record::Record,
};

/// Reads the record of a workspace, does with it what is done with one, writes it and reads
/// it again.
///
/// # Errors
/// What users see.
pub fn read_record(json: &[u8]) -> Result<(), String> {
    let path = Path::new("workspace.json");
    let mut record = Record::from_json(json, path).map_err(|error| error.to_string())?;
    let now = SystemTime::now();
    let _ = due(&record, record.last_activity.time(), now);
    check(&record);
    let layers = record.layers.all().collect::<Vec<_>>();
    for merge in record.mergeable_layers() {
        let mut merged = record.clone();
        merged.layers.merge(&merge);
        check(&merged);
    }
    for layer in layers {
        let mut fork = record.clone();
        fork.layers = record.layers.fork(layer);
        let top = fork.layers.top();
        assert!(fork.layers.is_valid() || top == u32::MAX - 1);
        assert!(fork.layers.chain(top).count() <= record.layers.all().count() + 1);
    }
    record.drop_unneeded_layers();
    check(&record);
    record.ended("stopped");
    check(&record);
    Ok(())
}

/// Checks that a record is the same after it was written and read.
fn check(record: &Record) {
    let json = serde_json::to_vec(record).expect("it is written as JSON");
    let again = Record::from_json(&json, Path::new("workspace.json"));
    assert_eq!(again.expect("it is read again"), *record);
}

/// Reads the file of a command that was run in a workspace.
pub fn read_command(text: &[u8]) -> Option<CommandRecord> {
    CommandRecord::parse(1, false, text)
}

/// Reads what a program and the keeper that it has started tell each other.
///
/// # Errors
/// What users see.
pub fn read_keeper_lines(mut lines: &[u8]) -> Result<(), String> {
    loop {
        let line = read_line(&mut lines).map_err(|error| error.to_string())?;
        let report = serde_json::from_slice::<KeeperReport>(&line);
        let request = serde_json::from_slice::<KeeperRequest>(&line);
        if let Ok(report) = &report {
            let again = serde_json::to_vec(report).expect("it is written as JSON");
            let again: KeeperReport = serde_json::from_slice(&again).expect("it is the same");
            assert_eq!(format!("{again:?}"), format!("{report:?}"));
        }
        if let (Err(error), Err(_)) = (report, request) {
            return Err(error.to_string());
        }
    }
}
