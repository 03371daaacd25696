use std::path::Path;

use vmcell_disk::{DiskError, EntryKind};

use crate::sample::Sample;

#[test]
fn links_lead_where_the_guest_would_be_led_and_never_out() {
    let disk = Sample::new().open();
    let passwd = disk.read("/etc/passwd").unwrap();
    for path in [
        "absolute",
        "/etc/relative",
        "src/deep/up/passwd",
        "../../etc/passwd",
        "src/../etc//./passwd/",
    ] {
        assert_eq!(disk.read(path).unwrap(), passwd, "{path}");
    }
    let target = disk.read_link("absolute").unwrap();
    assert_eq!(target, Path::new("/etc/passwd"));
    assert_eq!(disk.stat_link("absolute").unwrap().kind, EntryKind::Symlink);
    assert_eq!(disk.stat("absolute").unwrap().kind, EntryKind::File);
    let long = disk.read_link("data/long-link").unwrap();
    assert_eq!(long.as_os_str().len(), 200);
}

#[test]
fn what_is_not_there_or_something_else_is_told_by_kind() {
    let disk = Sample::new().open();
    let code = |result: Result<Vec<u8>, DiskError>| result.unwrap_err().code();
    assert_eq!(code(disk.read("nowhere")), "not-found");
    assert_eq!(code(disk.read("data/long-link")), "not-found");
    assert_eq!(code(disk.read("etc")), "wrong-kind");
    assert_eq!(code(disk.read("etc/passwd/x")), "wrong-kind");
    assert_eq!(code(disk.read("pipe")), "wrong-kind");
    assert_eq!(code(disk.read("round")), "too-many-links");
    assert_eq!(code(disk.read("a\0b")), "invalid");
    assert_eq!(disk.read_link("etc").unwrap_err().code(), "wrong-kind");
    assert!(!disk.exists("etc/passwd/x").unwrap());
    assert!(disk.exists("absolute").unwrap());
}

#[test]
fn errors_carry_no_control_bytes() {
    let disk = Sample::new().open();
    let path = "data/name with\x1b[31m escape/\x07\nx";
    let text = disk.read(path).unwrap_err().to_string();
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
