use std::io::{self, Read as _};

use flate2::{Decompress, FlushDecompress};

/// How clusters are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Method {
    /// Deflate without a header.
    Deflate,
    Zstd,
}

/// No frame of a cluster, which has 2 MiB at most, needs a larger window.
const LARGEST_WINDOW_BITS: u32 = 23;

impl Method {
    pub(super) fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Deflate),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Fills a cluster with what `packed` begins with. What follows there is
/// something else: only sectors are counted.
pub(in super::super) fn unpack(
    method: Method,
    packed: &[u8],
    cluster: &mut [u8],
) -> io::Result<()> {
    match method {
        Method::Deflate => {
            let mut state = Decompress::new(false);
            state
                .decompress(packed, cluster, FlushDecompress::Finish)
                .map_err(io::Error::other)?;
            if state.total_out() != cluster.len() as u64 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(())
        }
        Method::Zstd => {
            // QEMU takes several frames for one cluster, and so does this.
            let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
            decoder.window_log_max(LARGEST_WINDOW_BITS)?;
            decoder.read_exact(cluster)
        }
    }
}
