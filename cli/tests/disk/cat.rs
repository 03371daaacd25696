//! `vmcell-disk cat`.

use std::ffi::OsStr;

use crate::{
    program::{Ended, disk},
    sample::{Sample, pattern},
};

fn cat(sample: &Sample, arguments: &[&str]) -> Ended {
    let image = sample.image();
    let first = ["cat".as_ref(), image.as_os_str()];
    disk(first.into_iter().chain(arguments.iter().map(OsStr::new)))
}

#[test]
fn files_are_printed_byte_by_byte() {
    let sample = Sample::new();
    let ended = cat(&sample, &["/bin/tool"]);
    ended.printed();
    assert!(ended.0.stdout == pattern(300_000));
    let two = cat(&sample, &["/link", "etc/secret.conf"]).printed();
    assert_eq!(two, "root:x:0:\nkey = value\npassword = hunter2\n");
    let part = cat(&sample, &["/link", "--offset", "5", "--max-bytes", "3"]);
    assert_eq!(part.printed(), "x:0");
    assert_eq!(cat(&sample, &["/link", "--bytes", "4"]).printed(), "root");
    assert_eq!(cat(&sample, &["/link", "--offset", "1k"]).printed(), "");
    let sparse = cat(&sample, &["/sparse"]).0.stdout;
    assert_eq!(sparse.len(), 6_000_000);
    assert_eq!(&sparse[1_500_000..1_500_013], b"in the middle");
}

#[test]
fn one_bad_path_does_not_keep_the_others_from_being_printed() {
    let sample = Sample::new();
    let ended = cat(&sample, &["/nowhere", "/src", "/link"]);
    ended.assert_failed(1, "there is nothing at /nowhere");
    ended.assert_failed(1, "/src is a directory: `ls` lists it");
    assert_eq!(ended.stdout(), "root:x:0:\n");
    let ended = cat(&sample, &["/sparse", "--limit-bytes", "1m"]);
    ended.assert_failed(1, "with --limit-bytes SIZE");
    assert_eq!(ended.stdout(), "");
}
