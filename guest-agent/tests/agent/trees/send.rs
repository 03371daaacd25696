//! Which records are sent of a tree.

use std::{
    fs::{self, File},
    os::unix::{fs::FileExt, net::UnixListener},
};

use vmcell_wire::{
    FailureKind,
    files::{FileOperation, Send},
};

use super::{records::summarize, test_env::TestEnv};
use crate::race::race_against;

#[test]
fn what_is_no_file_is_named_and_left_out() {
    let mut env = TestEnv::new();
    fs::create_dir(env.at("t")).unwrap();
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mkfifoat(rustix::fs::CWD, env.at("t/pipe"), mode).unwrap();
    let _socket = UnixListener::bind(env.at("t/socket")).unwrap();
    let mut lines = summarize(&env.pull("t").output());
    lines.sort();
    let expected = [
        "enter ",
        "leave",
        "skipped pipe Some(Fifo) None",
        "skipped socket Some(Socket) None",
    ];
    assert_eq!(lines, expected);
    let result = env.pull("t/pipe");
    assert_eq!(result.failure, Some(FailureKind::Unsupported));
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut env = TestEnv::new();
    assert_eq!(env.pull("t").failure, Some(FailureKind::NotFound));
    let outside = env.pull("../etc").failure;
    assert_eq!(outside, Some(FailureKind::Denied));
}

#[test]
fn only_what_is_meant_is_sent_with_the_directories_on_the_way() {
    let mut env = TestEnv::new();
    for directory in ["t/src/a", "t/doc/empty", "t/target"] {
        fs::create_dir_all(env.at(directory)).unwrap();
    }
    for file in ["t/src/a/x.rs", "t/src/y.o", "t/doc/z.md", "t/target/w.rs"] {
        fs::write(env.at(file), "x").unwrap();
    }
    let send = Send {
        path: b"t",
        include: b"*.rs",
        exclude: b"target/",
    };
    let some = summarize(&env.perform(FileOperation::Send(send)).output());
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
    let some = summarize(&env.perform(FileOperation::Send(send)).output());
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
    let mut env = TestEnv::new();
    let send = Send {
        path: b"",
        include: b"[",
        exclude: b"",
    };
    let result = env.perform(FileOperation::Send(send));
    assert_eq!(result.failure, Some(FailureKind::Invalid));
}

#[test]
fn a_file_that_changes_its_length_all_the_time_does_not_break_the_records() {
    let mut env = TestEnv::new();
    fs::create_dir(env.at("t")).unwrap();
    let file = File::create(env.at("t/restless")).unwrap();
    let mut length = 1u64;
    let change = || {
        length = length * 1_103_515_245 % 300_007;
        file.set_len(length).unwrap();
        file.write_all_at(b"words", length / 2).unwrap();
    };
    race_against(change, || {
        for _ in 0..200 {
            let records = env.pull("t").output();
            summarize(&records);
            env.push("u", &records).output();
        }
    });
}

#[test]
fn files_of_the_kernel_that_claim_to_be_empty_are_sent_whole() {
    let mut env = TestEnv::new();
    let records = env.host.pull("/proc".as_ref(), "version").output();
    env.push("version", &records).output();
    let expected = fs::read("/proc/version").unwrap();
    assert_eq!(fs::read(env.at("version")).unwrap(), expected);
}
