use std::io::{self, Write};

use flate2::{Compression, Crc, write::ZlibEncoder};

use super::picture::Picture;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Eight bits each of red, green, blue and opacity; the only compression and the
/// only filters there are; not interlaced.
const FORMAT: [u8; 5] = [8, 6, 0, 0, 0];

impl Picture {
    /// The picture as the bytes of a PNG file: ISO/IEC 15948.
    pub fn to_png(&self) -> Vec<u8> {
        // Memory takes everything, and no screen is so large that its numbers do
        // not fit.
        self.encode().unwrap_or_default()
    }

    fn encode(&self) -> io::Result<Vec<u8>> {
        let mut lines = ZlibEncoder::new(Vec::new(), Compression::fast());
        for line in self.rgba.chunks_exact(self.width.max(1) * 4) {
            // Each line says how it is filtered: not at all.
            lines.write_all(&[0])?;
            lines.write_all(line)?;
        }
        let mut header = Vec::new();
        header.extend(length(self.width)?);
        header.extend(length(self.height)?);
        header.extend(FORMAT);
        let mut png = SIGNATURE.to_vec();
        push(&mut png, b"IHDR", &header)?;
        push(&mut png, b"IDAT", &lines.finish()?)?;
        push(&mut png, b"IEND", &[])?;
        Ok(png)
    }
}

/// A chunk: length, type, data, and a checksum of the last two.
fn push(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) -> io::Result<()> {
    let mut checksum = Crc::new();
    checksum.update(kind);
    checksum.update(data);
    png.extend(length(data.len())?);
    png.extend(kind);
    png.extend(data);
    png.extend(checksum.sum().to_be_bytes());
    Ok(())
}

fn length(number: usize) -> io::Result<[u8; 4]> {
    let number = u32::try_from(number).map_err(io::Error::other)?;
    Ok(number.to_be_bytes())
}
