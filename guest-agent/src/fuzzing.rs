//! Parsers that are not public, for the fuzz targets (`fuzz/fuzz_targets`). It exists only
//! with the feature `fuzzing`, and is no API. A folder with such parsers has a file
//! `fuzzing.rs`, and all of them are here.

#[cfg(feature = "network")]
pub use crate::network::fuzzing::{Asked, TcpAnswers, ask, ask_over_tcp};
#[cfg(feature = "services")]
pub use crate::probe::fuzzing::examine_response;

use alloc::vec::Vec;

use crate::{kernel_log, user};

/// Returns the user that `wanted` is in these databases, as numbers: the user, its group and
/// its supplementary groups.
pub fn find_user(wanted: &str, passwd: &[u8], group: &[u8]) -> Option<(u32, u32, Vec<u32>)> {
    let found = user::User::look_up(wanted, passwd, group).ok()?;
    Some((found.uid, found.gid, found.groups))
}

/// Returns the process whose kill a record of the kernel's log reports.
pub fn oom_killed_process(record: &[u8]) -> Option<u32> {
    kernel_log::parse_oom_kill(record).map(|kill| kill.pid)
}
