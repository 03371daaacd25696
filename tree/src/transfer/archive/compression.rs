use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};

use super::ArchiveFormat;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The size of the buffers.
const BUFFER: usize = 128 * 1024;

/// Detects gzip and zstd by the first bytes, and decompresses them.
pub(super) fn decompress(reader: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut reader = BufReader::with_capacity(BUFFER, reader);
    let start = reader.fill_buf()?;
    if start.starts_with(GZIP) {
        return Ok(Box::new(BufReader::with_capacity(
            BUFFER,
            MultiGzDecoder::new(reader),
        )));
    }
    if start.starts_with(ZSTD) {
        #[cfg(not(feature = "zstd"))]
        return Err(without_zstd());
        // Its memory is limited: by default it rejects windows above 128 MiB.
        #[cfg(feature = "zstd")]
        return Ok(Box::new(BufReader::with_capacity(
            BUFFER,
            zstd::stream::read::Decoder::with_buffer(reader)?,
        )));
    }
    Ok(Box::new(reader))
}

/// A writer for the bytes of an archive, with its compression.
pub(super) enum Compressor {
    Plain(BufWriter<Box<dyn Write + Send>>),
    Gzip(GzEncoder<Box<dyn Write + Send>>),
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::write::Encoder<'static, Box<dyn Write + Send>>),
}

#[cfg(not(feature = "zstd"))]
fn without_zstd() -> io::Error {
    let text = "for archives that are compressed with zstd, compile with the feature \"zstd\"";
    io::Error::new(io::ErrorKind::Unsupported, text)
}

impl Compressor {
    pub(super) fn new(writer: Box<dyn Write + Send>, format: ArchiveFormat) -> io::Result<Self> {
        Ok(match format {
            ArchiveFormat::Tar => Self::Plain(BufWriter::with_capacity(BUFFER, writer)),
            ArchiveFormat::TarGz => Self::Gzip(GzEncoder::new(writer, Compression::default())),
            #[cfg(not(feature = "zstd"))]
            ArchiveFormat::TarZst => return Err(without_zstd()),
            #[cfg(feature = "zstd")]
            ArchiveFormat::TarZst => Self::Zstd(zstd::stream::write::Encoder::new(
                writer,
                zstd::DEFAULT_COMPRESSION_LEVEL,
            )?),
        })
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(writer) => writer.write_all(bytes),
            Self::Gzip(writer) => writer.write_all(bytes),
            #[cfg(feature = "zstd")]
            Self::Zstd(writer) => writer.write_all(bytes),
        }
    }

    /// Writes the buffered rest and the end of the compressed data.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(mut writer) => writer.flush(),
            Self::Gzip(writer) => writer.finish()?.flush(),
            #[cfg(feature = "zstd")]
            Self::Zstd(writer) => writer.finish()?.flush(),
        }
    }
}
