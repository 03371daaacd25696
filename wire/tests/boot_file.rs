//! The exact bytes of boot files of all generations, because hosts and agents of
//! different versions must work together. Add to these tests, never change them.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use vmcell_wire::boot::{
    BOOT_FILE_MARKER, Boot, BootFileError, BootLink, BootOptions, MAX_BOOT_FILE,
};

const BOOT: Boot<'static> = Boot {
    boot_id: [1; 16],
    reset_key: [3; 16],
    seed: [2; 32],
    wall_time_ns: 300,
    hostname: "cell",
    root_device: "/dev/vda",
    link: BootLink::Serial,
    disk_is_persistent: true,
};

/// The encoding of [`BOOT`] in all generations so far.
fn contents() -> Vec<u8> {
    let mut bytes = [[1; 16], [3; 16], [2; 16], [2; 16]].concat();
    bytes.extend(b"\xac\x02\x04cell\x08/dev/vda\x00\x01");
    bytes
}

/// Returns a file of `generation` for readers of `oldest` or later.
fn file(generation: u16, oldest: u16, contents: &[u8]) -> Vec<u8> {
    let mut file = b"vmcb".to_vec();
    file.extend(generation.to_le_bytes());
    file.extend(oldest.to_le_bytes());
    file.extend(u32::try_from(contents.len()).unwrap().to_le_bytes());
    file.extend(contents);
    file
}

#[test]
fn generation_1() {
    let bytes = file(1, 1, &contents());
    assert_eq!(BOOT.to_file().unwrap(), bytes);
    assert_eq!(Boot::from_file(&bytes), Ok(BOOT));
}

#[test]
fn generation_1_with_options() {
    let options = BootOptions { grow_root: true };
    let bytes = file(1, 1, &[&contents()[..], b"\x01"].concat());
    assert_eq!(BOOT.to_file_with(options).unwrap(), bytes);
    assert_eq!(Boot::from_file_with_options(&bytes), Ok((BOOT, options)));
    // An older agent passes over them, and an older host has none.
    assert_eq!(Boot::from_file(&bytes), Ok(BOOT));
    let none = BootOptions::default();
    let bytes = file(1, 1, &contents());
    assert_eq!(Boot::from_file_with_options(&bytes), Ok((BOOT, none)));
}

#[test]
fn before_there_were_generations() {
    let error = Boot::from_file(&contents()).unwrap_err();
    assert_eq!(error, BootFileError::WithoutVersion);
    assert!(error.to_string().contains(BOOT_FILE_MARKER));
    assert!(error.to_string().contains("host library is older"));
    assert_eq!(Boot::from_file(b""), Err(BootFileError::WithoutVersion));
}

#[test]
fn what_a_newer_host_adds_is_passed_over() {
    let more = [&contents()[..], b"another field"].concat();
    let mut newer = file(7, 1, &more);
    newer.extend(b"and something behind it all");
    assert_eq!(Boot::from_file(&newer), Ok(BOOT));
}

#[test]
fn what_an_older_agent_must_not_pass_over_is_named() {
    let error = Boot::from_file(&file(7, 6, &contents())).unwrap_err();
    assert_eq!(error, BootFileError::TooNew { needs: 6 });
    assert!(error.to_string().contains("generation 6"), "{error}");
}

#[test]
fn what_is_too_long_is_not_written() {
    let hostname = "x".repeat(MAX_BOOT_FILE);
    let boot = Boot {
        hostname: &hostname,
        ..BOOT
    };
    assert!(boot.to_file().is_err());
}

proptest! {
    #[test]
    fn a_part_of_a_file_is_damaged(length in 4..100usize) {
        let whole = file(1, 1, &contents());
        prop_assume!(length < whole.len());
        let damaged = Err(BootFileError::Damaged);
        prop_assert_eq!(Boot::from_file(&whole[..length]), damaged);
    }

    #[test]
    fn garbage_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Boot::from_file(&bytes);
        let _ = Boot::from_file(&file(1, 1, &bytes));
    }
}
