use std::io::{self, BufReader, BufWriter, Cursor, Read, Write};

use flate2::{Compression, bufread::MultiGzDecoder, write::GzEncoder};

use super::{ArchiveFormat, OtherFormat};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The size of the buffers.
const BUFFER: usize = 128 * 1024;

/// A reader of any kind.
type AnyReader = Box<dyn Read + Send>;

/// The bytes of an archive without gzip and zstd.
pub(super) struct Decompressed {
    pub(super) reader: AnyReader,
    /// The format that the first bytes seem to have, unless it can be read.
    pub(super) other_format: Option<OtherFormat>,
}

/// Detects gzip and zstd by the first bytes, and decompresses them.
pub(super) fn decompress(reader: AnyReader) -> io::Result<Decompressed> {
    let mut reader = BufReader::with_capacity(BUFFER, reader);
    let start = read_start(&mut reader)?;
    let (is_gzip, is_zstd) = (start.starts_with(GZIP), start.starts_with(ZSTD));
    let other_format = OtherFormat::detect(&start);
    let reader = Cursor::new(start).chain(reader);
    let reader: AnyReader = if is_gzip {
        Box::new(MultiGzDecoder::new(reader))
    } else if is_zstd {
        #[cfg(not(feature = "zstd"))]
        return Err(without_zstd());
        // Its memory is limited: by default it rejects windows above 128 MiB.
        #[cfg(feature = "zstd")]
        Box::new(zstd::stream::read::Decoder::with_buffer(reader)?)
    } else {
        Box::new(reader)
    };
    Ok(Decompressed {
        reader: Box::new(BufReader::with_capacity(BUFFER, reader)),
        other_format,
    })
}

/// Reads the first bytes, which show the format. Frames before them that zstd
/// and lz4 define to be skipped are skipped.
fn read_start(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    loop {
        let mut start = Vec::new();
        reader.by_ref().take(8).read_to_end(&mut start)?;
        let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d] = start[..] else {
            reader.by_ref().take(8).read_to_end(&mut start)?;
            return Ok(start);
        };
        let length = u32::from_le_bytes([a, b, c, d]);
        io::copy(&mut reader.by_ref().take(length.into()), &mut io::sink())?;
    }
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
