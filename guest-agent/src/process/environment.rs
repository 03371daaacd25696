use alloc::{format, vec::Vec};

use vmcell_wire::{PackedStrings, PackedStringsBuf};

use crate::user::User;

/// The default search path for programs.
const PATH: &[u8] = b"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Adds to `more` the variables that programs expect and `env` lacks, and those of
/// `defaults`. Without a user, those of root.
pub(super) fn add_defaults(
    env: PackedStrings<'_>,
    defaults: PackedStrings<'_>,
    user: Option<&User>,
    more: &mut PackedStringsBuf,
) {
    let lacks = |name: &[u8]| {
        !env.iter().any(|variable| {
            let value = variable.to_bytes().strip_prefix(name);
            value.is_some_and(|value| value.starts_with(b"="))
        })
    };
    // `push` fails only on a zero byte, and none of these has one.
    let mut add = |variable: &[u8]| {
        let _ = more.push(variable);
    };
    if lacks(b"HOME") {
        match user {
            None => add(b"HOME=/root"),
            Some(user) => add(format!("HOME={}", user.home).as_bytes()),
        }
    }
    if lacks(b"LANG") {
        add(b"LANG=C.UTF-8");
    }
    if lacks(b"PATH") {
        add(PATH);
    }
    if lacks(b"USER") {
        match user {
            None => add(b"USER=root"),
            Some(user) => add(format!("USER={}", user.name).as_bytes()),
        }
    }
    for variable in defaults.iter().map(core::ffi::CStr::to_bytes) {
        if lacks(
            variable
                .split(|byte| *byte == b'=')
                .next()
                .unwrap_or_default(),
        ) {
            add(variable);
        }
    }
}

/// Collects the files that a program's name may refer to: itself if it has a
/// slash, else one in each directory of `PATH`, as in exec(3).
pub(super) fn find_candidates(
    program: &[u8],
    env: PackedStrings<'_>,
    candidates: &mut PackedStringsBuf,
) {
    candidates.clear();
    if program.contains(&b'/') {
        // None of these strings can have a zero byte.
        let _ = candidates.push(program);
        return;
    }
    let directories = env
        .iter()
        .map(core::ffi::CStr::to_bytes)
        .chain([PATH])
        .find_map(|variable| variable.strip_prefix(b"PATH="))
        .unwrap_or_default();
    let mut candidate = Vec::new();
    for directory in directories.split(|byte| *byte == b':') {
        candidate.clear();
        candidate.extend_from_slice(if directory.is_empty() {
            b"."
        } else {
            directory
        });
        candidate.push(b'/');
        candidate.extend_from_slice(program);
        let _ = candidates.push(&candidate);
    }
}
