use vmcell_wire::{ExitCause, Failure, FailureKind, Outcome, Stage};

use super::{close, exit};

#[test]
fn outcomes() {
    assert_eq!(
        close(Outcome::Failed(Failure::from_errno(2, Stage::Exec, "no"))),
        concat!("070000000c0b0a04", "00", "01", "02", "06", "026e6f")
    );
    assert_eq!(close(Outcome::Pong), "010000000c0b0a0401");
    assert_eq!(
        close(Outcome::Exited(exit(ExitCause::Signal(9)))),
        concat!(
            "0d0000000c0b0a04",
            "02",
            "0109",
            "010203040506",
            "01",
            "07",
            "0101"
        )
    );
    assert_eq!(close(Outcome::PoweringOff), "010000000c0b0a0403");
    assert_eq!(
        close(Outcome::Spawned { id: 5, pid: 300 }),
        concat!("040000000c0b0a04", "04", "05", "ac02")
    );
    assert_eq!(close(Outcome::Done), "010000000c0b0a0405");
    assert_eq!(close(Outcome::DiskClean), "010000000c0b0a0409");
    assert_eq!(
        close(Outcome::EndOfList { more: true }),
        concat!("020000000c0b0a04", "06", "01")
    );
}

#[test]
fn failures() {
    let kinds = [
        FailureKind::Invalid,
        FailureKind::NotFound,
        FailureKind::Denied,
        FailureKind::Limit,
        FailureKind::Unsupported,
        FailureKind::Other,
        FailureKind::Conflict,
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        assert_eq!(
            close(Outcome::Failed(Failure::new(kind, Stage::Request, ""))),
            format!("050000000c0b0a0400{number:02x}000000")
        );
    }
    let stages = [
        Stage::Request,
        Stage::Cgroup,
        Stage::Pipes,
        Stage::Clone,
        Stage::Setup,
        Stage::WorkingDirectory,
        Stage::Exec,
        Stage::User,
        Stage::Limits,
        Stage::Process,
    ];
    for (number, stage) in stages.into_iter().enumerate() {
        let failure = Failure::new(FailureKind::Invalid, stage, "");
        assert_eq!(
            close(Outcome::Failed(failure)),
            format!("050000000c0b0a04000000{number:02x}00")
        );
    }
}
