use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::Error;

/// Bytes that nobody can guess.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let count = getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|errno| Error::host("get random bytes")(errno.into()))?;
    // The kernel never gives fewer than asked for up to 256 bytes.
    debug_assert_eq!(count, N);
    Ok(bytes)
}
