//! `vmcell-disk sha256`.

use std::fs;

use serde_json::json;

use crate::{
    program::disk,
    sample::{ODD_NAMES, Sample, run, tool},
};

#[test]
fn an_exported_tree_has_the_sums_of_the_disk() {
    let sample = Sample::new();
    let (image, out) = (sample.image(), sample.path("out"));
    let sums = disk(["sha256".as_ref(), image.as_os_str(), "/".as_ref()]);
    sums.printed();
    let file = sample.path("sums");
    fs::write(&file, &sums.0.stdout).unwrap();
    let exported = disk([
        "export".as_ref(),
        image.as_os_str(),
        "/".as_ref(),
        out.as_os_str(),
    ]);
    assert_eq!(exported.code(), 0, "{exported:?}");
    let mut check = tool("sha256sum");
    let checked = run(check.args(["--strict", "-c"]).arg(file).current_dir(out));
    assert_eq!(checked.lines().count(), 8 + ODD_NAMES.len(), "{checked}");
    assert!(
        checked.lines().all(|line| line.ends_with(": OK")),
        "{checked}"
    );
}

#[test]
fn files_are_named_one_by_one_and_what_has_no_sum_is_said() {
    let sample = Sample::new();
    let image = sample.image();
    let sums = |paths: &[&str]| {
        let first = ["sha256".as_ref(), image.as_os_str()];
        disk(
            first
                .into_iter()
                .chain(paths.iter().map(std::ffi::OsStr::new)),
        )
    };
    let path = sample.tree().join("src/empty");
    let expected = run(tool("sha256sum").arg(path));
    let digest = expected.split(' ').next().unwrap();
    assert_eq!(
        sums(&["/src/empty"]).printed(),
        format!("{digest}  src/empty\n")
    );
    let ended = sums(&["/pipe", "/nowhere", "/src/empty"]);
    ended.assert_failed(1, "/pipe is not a regular file or directory");
    ended.assert_failed(1, "nothing at /nowhere");
    assert_eq!(ended.stdout().lines().count(), 1);
    let parsed = sums(&["/src/empty", "--json"]).json();
    assert_eq!(parsed[0]["sha256"], json!(digest));
    assert_eq!(parsed[0]["path"], json!("/src/empty"));
}
