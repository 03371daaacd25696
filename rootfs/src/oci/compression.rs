use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use oci_spec::image::MediaType;

use super::ImageProblem;

/// How a layer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
}

/// The largest window of zstd: what its own program accepts without being told.
const MAX_ZSTD_WINDOW_LOG: u32 = 27;

impl Compression {
    /// Returns that of a layer with a media type of OCI or Docker.
    pub(super) fn of(media_type: &MediaType) -> Result<Self, ImageProblem> {
        Ok(match media_type {
            MediaType::ImageLayer => Self::None,
            MediaType::ImageLayerGzip => Self::Gzip,
            MediaType::ImageLayerZstd => Self::Zstd,
            MediaType::Other(name) => match name.as_str() {
                "application/vnd.docker.image.rootfs.diff.tar" => Self::None,
                "application/vnd.docker.image.rootfs.diff.tar.gzip" => Self::Gzip,
                "application/vnd.docker.image.rootfs.diff.tar.zstd" => Self::Zstd,
                "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip" => {
                    return Err(ImageProblem::ForeignLayer);
                }
                _ => return Err(ImageProblem::MediaType(media_type.to_string())),
            },
            MediaType::ImageLayerNonDistributable
            | MediaType::ImageLayerNonDistributableGzip
            | MediaType::ImageLayerNonDistributableZstd => return Err(ImageProblem::ForeignLayer),
            _ => return Err(ImageProblem::MediaType(media_type.to_string())),
        })
    }

    /// Returns that of bytes, of which it reads the first.
    pub(super) fn detect(reader: &mut impl BufRead) -> io::Result<Self> {
        Ok(match reader.fill_buf()? {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        })
    }

    /// Returns the bytes that were compressed.
    pub(super) fn reader<'a>(self, reader: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        let reader = BufReader::with_capacity(64 << 10, reader);
        Ok(match self {
            Self::None => Box::new(reader),
            Self::Gzip => Box::new(MultiGzDecoder::new(reader)),
            Self::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(reader)?;
                decoder.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
                Box::new(decoder)
            }
        })
    }
}
