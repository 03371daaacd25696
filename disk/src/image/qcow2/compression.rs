use std::io::{self, Read as _};

use flate2::{Decompress, FlushDecompress};

/// The compression of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum CompressionType {
    /// Raw deflate, without a zlib header.
    Deflate,
    Zstd,
}

/// A cluster has at most 2 MiB, so no frame needs a larger window.
const MAX_WINDOW_BITS: u32 = 23;

impl CompressionType {
    pub(super) fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Deflate),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Decompresses a cluster. `compressed` may contain unrelated data at its end,
/// since its length is recorded in sectors.
pub(in super::super) fn decompress(
    compression: CompressionType,
    compressed: &[u8],
    cluster: &mut [u8],
) -> io::Result<()> {
    match compression {
        CompressionType::Deflate => {
            let mut state = Decompress::new(false);
            state
                .decompress(compressed, cluster, FlushDecompress::Finish)
                .map_err(io::Error::other)?;
            if state.total_out() != cluster.len() as u64 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(())
        }
        CompressionType::Zstd => {
            // Like QEMU, accept several frames for one cluster.
            let mut decoder = zstd::stream::read::Decoder::with_buffer(compressed)?;
            decoder.window_log_max(MAX_WINDOW_BITS)?;
            decoder.read_exact(cluster)
        }
    }
}
