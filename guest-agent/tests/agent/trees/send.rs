//! What is sent of a tree.

use std::{
    fs::{self, File},
    os::unix::{fs::FileExt, net::UnixListener},
};

use vmcell_wire::{
    FailureKind,
    files::{Send, Work},
};

use super::{job::Field, records::words};
use crate::concurrent::with_concurrent;

#[test]
fn what_is_no_file_is_named_and_left_out() {
    let mut field = Field::new();
    fs::create_dir(field.at("t")).unwrap();
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mkfifoat(rustix::fs::CWD, field.at("t/pipe"), mode).unwrap();
    let _socket = UnixListener::bind(field.at("t/socket")).unwrap();
    let mut words = words(&field.pull("t").output());
    words.sort();
    let expected = [
        "enter ",
        "leave",
        "skipped pipe Some(Fifo) None",
        "skipped socket Some(Socket) None",
    ];
    assert_eq!(words, expected);
    let worked = field.pull("t/pipe");
    assert_eq!(worked.failure, Some(FailureKind::Unsupported));
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut field = Field::new();
    assert_eq!(field.pull("t").failure, Some(FailureKind::NotFound));
    let outside = field.pull("../etc").failure;
    assert_eq!(outside, Some(FailureKind::Denied));
}

#[test]
fn only_what_is_meant_is_sent_with_the_directories_on_the_way() {
    let mut field = Field::new();
    for directory in ["t/src/a", "t/doc/empty", "t/target"] {
        fs::create_dir_all(field.at(directory)).unwrap();
    }
    for file in ["t/src/a/x.rs", "t/src/y.o", "t/doc/z.md", "t/target/w.rs"] {
        fs::write(field.at(file), "x").unwrap();
    }
    let send = Send {
        path: b"t",
        include: b"*.rs",
        exclude: b"target/",
    };
    let some = words(&field.work(Work::Send(send)).output());
    let expected = [
        "enter ",
        "enter src",
        "enter a",
        "whole x.rs 1",
        "leave",
        "leave",
        "leave",
    ];
    assert_eq!(some, expected);

    let send = Send {
        path: b"t",
        include: b"",
        exclude: b"/src\n/target\n*.md",
    };
    let some = words(&field.work(Work::Send(send)).output());
    assert_eq!(
        some,
        [
            "enter ",
            "enter doc",
            "enter empty",
            "leave",
            "leave",
            "leave"
        ]
    );
}

#[test]
fn a_pattern_that_makes_no_sense_is_refused() {
    let mut field = Field::new();
    let send = Send {
        path: b"",
        include: b"[",
        exclude: b"",
    };
    let worked = field.work(Work::Send(send));
    assert_eq!(worked.failure, Some(FailureKind::Invalid));
}

#[test]
fn a_file_that_changes_its_length_all_the_time_does_not_break_the_records() {
    let mut field = Field::new();
    fs::create_dir(field.at("t")).unwrap();
    let file = File::create(field.at("t/restless")).unwrap();
    let mut length = 1u64;
    let change = || {
        length = length * 1_103_515_245 % 300_007;
        file.set_len(length).unwrap();
        file.write_all_at(b"words", length / 2).unwrap();
    };
    with_concurrent(change, || {
        for _ in 0..200 {
            let records = field.pull("t").output();
            words(&records);
            field.push("u", &records).output();
        }
    });
}

#[test]
fn files_of_the_kernel_that_claim_to_be_empty_are_sent_whole() {
    let mut field = Field::new();
    let records = field.host.pull("/proc".as_ref(), "version").output();
    field.push("version", &records).output();
    let expected = fs::read("/proc/version").unwrap();
    assert_eq!(fs::read(field.at("version")).unwrap(), expected);
}
