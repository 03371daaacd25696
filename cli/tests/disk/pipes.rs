//! Readers that close the pipe.

use std::ffi::OsStr;

use crate::{
    program::{Ended, command},
    sample::Sample,
};

#[test]
fn a_reader_that_has_seen_enough_ends_every_command_quietly() {
    let sample = Sample::new();
    let image = sample.image();
    for (task, more) in [
        ("ls", &["-R"][..]),
        ("ls", &["-lR"]),
        ("ls", &["-R", "--json"]),
        ("tree", &[]),
        ("cat", &["/bin/tool"]),
        ("stat", &["/"]),
        ("find", &[]),
        ("find", &["-0"]),
        ("grep", &["."]),
        ("du", &[]),
        ("sha256", &["/"]),
        ("info", &[]),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let first = [task.as_ref(), image.as_os_str()];
        let arguments = first.into_iter().chain(more.iter().map(OsStr::new));
        let ended = Ended(command(arguments).stdout(writer).output().unwrap());
        let said = ended.stderr();
        // A message about a binary file may have been printed before.
        let is_quiet = said
            .lines()
            .all(|line| line.ends_with("binary file matches"));
        assert!(is_quiet, "{task}: {ended:?}");
        assert_eq!(ended.code(), 128 + 13, "{task} {more:?}");
    }
}
