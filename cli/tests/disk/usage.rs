//! `vmcell-disk du`.

use std::ffi::OsStr;

use serde_json::json;

use crate::{
    program::{Ended, disk},
    sample::Sample,
};

fn du(sample: &Sample, arguments: &[&str]) -> Ended {
    let image = sample.image();
    let first = ["du".as_ref(), image.as_os_str()];
    disk(first.into_iter().chain(arguments.iter().map(OsStr::new)))
}

#[test]
fn room_is_told_by_directory() {
    let sample = Sample::new();
    let usage = |arguments: &[&str]| du(&sample, arguments).printed();
    // Directories and files have 4 KiB blocks; the file with two names counts
    // once.
    assert_eq!(
        usage(&["/src"]),
        "8\t/src/deep/er\n12\t/src/deep\n20\t/src\n"
    );
    assert_eq!(usage(&["/src", "-d", "1"]), "12\t/src/deep\n20\t/src\n");
    assert_eq!(usage(&["/src", "-s", "-b"]), "42\t/src\n");
    assert_eq!(usage(&["/bin", "-h"]), "300K\t/bin\n");
    assert_eq!(usage(&["/bin", "-hb"]), "293K\t/bin\n");
    assert_eq!(usage(&["/etc/group"]), "4\t/etc/group\n");
    let parsed = du(&sample, &["/src", "--max-depth", "0", "--json"]).json();
    let expected = json!({
        "path": "/src",
        "entries": 7,
        "directories": 3,
        "bytes": 42,
        "allocated": 20480,
        "problems": 0,
    });
    assert_eq!(parsed, [expected]);
    du(&sample, &["/nowhere"]).assert_failed(125, "nothing at /nowhere");
    assert!(usage(&["--help"]).contains("--human-readable"));
}
