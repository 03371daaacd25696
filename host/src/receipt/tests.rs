use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

use proptest::prelude::*;

use super::*;

fn receipt(audit_id: &str) -> Receipt {
    Receipt {
        version: Receipt::VERSION,
        kind: ReceiptKind::Run,
        audit_id: audit_id.to_owned(),
        caller: "default".to_owned(),
        started: "2026-01-31T12:00:59.000000000Z".to_owned(),
        ended: "2026-01-31T12:01:00.000000000Z".to_owned(),
        sandbox_id: Some("0123456789ab".to_owned()),
        image: None,
        kernel: None,
        agent: None,
        policy: "00".repeat(32),
        command: vec!["echo".to_owned(), "a\u{1b}ä\"".to_owned()],
        inputs: Vec::new(),
        stdin: None,
        stdout: None,
        stderr: None,
        outputs: Vec::new(),
        network_grants: Vec::new(),
        secrets: Vec::new(),
        connections: Vec::new(),
        exit: None,
        failure: None,
        retention: Some("destroy".to_owned()),
        ttl_seconds: None,
        decisions: Vec::new(),
    }
}

fn log_of(count: u64, is_signed: bool) -> (tempfile::TempDir, ReceiptLog) {
    let folder = tempfile::tempdir().unwrap();
    let log = ReceiptLog::at(folder.path().join("receipts")).unwrap();
    if is_signed {
        log.create_key().unwrap();
    }
    for number in 0..count {
        log.append(&receipt(&format!("run_{number}"))).unwrap();
    }
    (folder, log)
}

fn problem(log: &ReceiptLog) -> Option<ReceiptProblem> {
    log.verify(None).unwrap().problem
}

fn lines(log: &ReceiptLog) -> Vec<String> {
    let text = fs::read_to_string(log.folder().join("log")).unwrap();
    text.lines().map(|line| format!("{line}\n")).collect()
}

fn write_lines(log: &ReceiptLog, lines: &[String]) {
    fs::write(log.folder().join("log"), lines.concat()).unwrap();
}

#[test]
fn receipts_are_found_again_and_verified() {
    for is_signed in [false, true] {
        let (_folder, log) = log_of(3, is_signed);
        let verified = log.verify(None).unwrap();
        assert!(verified.is_valid(), "{verified:?}");
        assert_eq!(
            (verified.receipts, verified.signed),
            (3, 3 * u64::from(is_signed))
        );
        let found = log.find("run_1").unwrap().unwrap();
        assert_eq!(found.sequence, 2);
        assert_eq!(log.find("2").unwrap(), Some(found.clone()));
        assert_eq!(log.find(&found.digest[..12]).unwrap(), Some(found.clone()));
        assert_eq!(log.find("run_9").unwrap(), None);
        let typed: Receipt = serde_json::from_value(found.receipt).unwrap();
        assert_eq!(typed, receipt("run_1"));
        for name in ["log", "head", "lock"] {
            let mode = fs::metadata(log.folder().join(name)).unwrap().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        assert_eq!(fs::metadata(log.folder()).unwrap().mode() & 0o777, 0o700);
    }
}

#[test]
fn an_empty_log_is_valid_and_a_log_without_its_head_is_not() {
    let (_folder, log) = log_of(0, false);
    assert!(log.verify(None).unwrap().is_valid());
    let (_folder, log) = log_of(2, false);
    fs::remove_file(log.folder().join("head")).unwrap();
    assert_eq!(problem(&log), Some(ReceiptProblem::Head));
    assert!(log.append(&receipt("run")).is_err());
    fs::write(log.folder().join("head"), "{}").unwrap();
    assert_eq!(problem(&log), Some(ReceiptProblem::Head));
    let error = log.append(&receipt("run")).unwrap_err();
    assert_eq!(error.code(), "receipts-damaged");
}

#[test]
fn lines_that_are_cut_off_are_found_and_nothing_is_appended_to_the_rest() {
    let (_folder, log) = log_of(3, false);
    let all = lines(&log);
    write_lines(&log, &all[..2]);
    assert_eq!(problem(&log), Some(ReceiptProblem::CutOff { expected: 3 }));
    let error = log.append(&receipt("run")).unwrap_err();
    assert_eq!(error.code(), "receipts-damaged");
    fs::remove_file(log.folder().join("log")).unwrap();
    assert_eq!(problem(&log), Some(ReceiptProblem::CutOff { expected: 3 }));
}

#[test]
fn what_a_program_leaves_that_dies_is_counted_or_set_aside() {
    let (_folder, log) = log_of(2, true);
    let head = log.folder().join("head");
    let before = fs::read(&head).unwrap();
    log.append(&receipt("whole")).unwrap();
    // It died before it wrote the head.
    fs::write(&head, before).unwrap();
    let verified = log.verify(None).unwrap();
    assert!(
        verified.is_valid() && verified.uncounted == 1,
        "{verified:?}"
    );
    // And the next one within a line.
    let mut bytes = fs::read(log.folder().join("log")).unwrap();
    bytes.extend_from_slice(br#"{"digest":"00"#);
    fs::write(log.folder().join("log"), bytes).unwrap();
    assert_eq!(problem(&log), Some(ReceiptProblem::Torn { line: 4 }));
    assert_eq!(log.append(&receipt("next")).unwrap().sequence, 4);
    assert_eq!(problem(&log), None);
    let torn = fs::read(log.folder().join("torn-4")).unwrap();
    assert_eq!(torn, br#"{"digest":"00"#);
}

#[test]
fn without_the_key_nobody_can_sign() {
    let (_folder, log) = log_of(2, true);
    let (_other_folder, other) = log_of(2, true);
    // A whole log with another key.
    for name in ["log", "head"] {
        fs::copy(other.folder().join(name), log.folder().join(name)).unwrap();
    }
    assert_eq!(problem(&log), Some(ReceiptProblem::Signature { line: 1 }));
    // And one without any.
    let (_other_folder, other) = log_of(2, false);
    for name in ["log", "head"] {
        fs::copy(other.folder().join(name), log.folder().join(name)).unwrap();
    }
    assert_eq!(problem(&log), Some(ReceiptProblem::Head));
    // Receipts from before the key are not signed, and those after it are.
    let (_folder, log) = log_of(1, false);
    let key = log.create_key().unwrap();
    assert_eq!(log.create_key().unwrap(), key);
    assert_eq!(log.public_key().unwrap(), Some(key));
    assert_eq!(key.to_string().parse::<ReceiptPublicKey>().unwrap(), key);
    log.append(&receipt("signed")).unwrap();
    let verified = log.verify(Some(&key)).unwrap();
    assert!(verified.is_valid() && verified.signed == 1, "{verified:?}");
    let stripped = lines(&log)
        .into_iter()
        .map(|line| match line.find(",\"signature\"") {
            Some(at) => format!("{}}}\n", &line[..at]),
            None => line,
        });
    write_lines(&log, &stripped.collect::<Vec<_>>());
    assert_eq!(problem(&log), Some(ReceiptProblem::Signature { line: 2 }));
}

#[test]
fn a_key_that_others_can_read_is_not_used() {
    let (_folder, log) = log_of(1, true);
    let path = log.folder().join("key");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = log.append(&receipt("run")).unwrap_err();
    assert_eq!(error.code(), "receipt-key");
    assert!("abc".parse::<ReceiptPublicKey>().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_changed_byte_is_found(
        is_signed: bool,
        in_head: bool,
        at in any::<prop::sample::Index>(),
        change in 1..=255u8,
    ) {
        let (_folder, log) = log_of(3, is_signed);
        let path = log.folder().join(if in_head { "head" } else { "log" });
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        fs::write(&path, bytes).unwrap();
        prop_assert!(problem(&log).is_some(), "byte {at}");
    }

    #[test]
    fn a_removed_repeated_or_moved_line_is_found(
        is_signed: bool,
        one in 0..4usize,
        other in 0..4usize,
        kind in 0..3u8,
    ) {
        let (_folder, log) = log_of(4, is_signed);
        let mut lines = lines(&log);
        let before = lines.clone();
        match kind {
            0 => drop(lines.remove(one)),
            1 => lines.insert(other, before[one].clone()),
            _ => lines.swap(one, other),
        }
        write_lines(&log, &lines);
        prop_assert_eq!(problem(&log).is_none(), lines == before);
    }
}
