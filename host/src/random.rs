use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::Error;

/// Returns cryptographically secure random bytes.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let count = getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|errno| Error::host("get random bytes")(errno.into()))?;
    // getrandom(2): requests of up to 256 bytes are always filled.
    debug_assert_eq!(count, N);
    Ok(bytes)
}
