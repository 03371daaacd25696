use std::io;
#[cfg(feature = "zstd")]
use std::io::Read as _;

use flate2::{Decompress, FlushDecompress};

/// The compression of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum CompressionType {
    /// Raw deflate, without a zlib header.
    Deflate,
    #[cfg(feature = "zstd")]
    Zstd,
}

/// A cluster has at most 2 MiB, so no frame needs a larger window.
#[cfg(feature = "zstd")]
const MAX_WINDOW_BITS: u32 = 23;

impl CompressionType {
    /// Returns the compression with this number.
    ///
    /// # Errors
    /// What is not supported.
    pub(super) fn from_number(number: u8) -> Result<Self, &'static str> {
        match number {
            0 => Ok(Self::Deflate),
            #[cfg(feature = "zstd")]
            1 => Ok(Self::Zstd),
            #[cfg(not(feature = "zstd"))]
            1 => Err("zstd, without which vmcell-disk was compiled (feature `zstd`)"),
            _ => Err("an unknown compression method"),
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
        #[cfg(feature = "zstd")]
        CompressionType::Zstd => {
            // Like QEMU, accept several frames for one cluster.
            let mut decoder = zstd::stream::read::Decoder::with_buffer(compressed)?;
            decoder.window_log_max(MAX_WINDOW_BITS)?;
            decoder.read_exact(cluster)
        }
    }
}
