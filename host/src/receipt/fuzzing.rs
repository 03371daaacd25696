//! What the fuzz target `state_files` reaches.

use serde_json::Value;

use super::{
    ReceiptEntry, ReceiptProblem, Verification, canonical, entry::NO_PREVIOUS, head::Head,
    lines::Lines, verification::verify,
};

/// Checks a log and its head, and that each line that counts is one of the log.
pub fn read_receipts(head: &[u8], log: &[u8]) -> Verification {
    for line in log.split(|byte| *byte == b'\n') {
        if let Some(entry) = ReceiptEntry::parse(line) {
            let again = entry.line().expect("it was a line");
            assert_eq!(again.as_bytes(), line);
        }
    }
    let lines = log.iter().filter(|byte| **byte == b'\n').count() as u64;
    let head = match head {
        [] => Ok(None),
        head => Head::parse(head).map(Some),
    };
    let found = verify(Some(Lines::new(log)), head, None).expect("it is in memory");
    assert!(found.receipts <= lines && found.signed <= found.receipts);
    assert!(found.uncounted <= found.receipts);
    found
}

/// Appends a line for each of these values that can be in a receipt, and checks that the log
/// is valid and that the change of any byte is found.
///
/// # Panics
/// If that is not so.
pub fn append_receipts(values: impl IntoIterator<Item = Value>, changed: usize, to: u8) {
    let mut log = Vec::new();
    let mut head = Head::default();
    for receipt in values {
        let mut entry = ReceiptEntry {
            sequence: head.count + 1,
            previous: head.digest.clone(),
            receipt,
            digest: String::new(),
            signature: None,
        };
        let Ok(digest) = entry.computed_digest() else {
            continue;
        };
        entry.digest = digest.clone();
        log.extend(entry.line().expect("it has a digest").into_bytes());
        log.push(b'\n');
        head.count += 1;
        head.bytes = log.len() as u64;
        head.digest = digest;
    }
    let block = canonical(&serde_json::to_value(&head).expect("it is JSON"));
    let mut block = block.expect("it has no fractions").into_bytes();
    block.resize(512, b' ');
    let found = read_receipts(&block, &log);
    assert_eq!((found.problem, found.receipts), (None, head.count));
    assert_eq!(head.count == 0, found.head == NO_PREVIOUS);
    let place = changed.checked_rem(log.len());
    if let Some(byte) = place.and_then(|place| log.get_mut(place))
        && *byte != to
    {
        *byte = to;
        let problem = read_receipts(&block, &log).problem;
        assert_ne!(problem, None, "a change was not found");
        assert_ne!(problem, Some(ReceiptProblem::Head), "a line was changed");
    }
}
