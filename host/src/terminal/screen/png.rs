use std::io::{self, Write};

use flate2::{Compression, Crc, write::ZlibEncoder};

use super::picture::Picture;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Bit depth 8, colour type RGBA, standard compression and filters, not
/// interlaced.
const FORMAT: [u8; 5] = [8, 6, 0, 0, 0];

impl Picture {
    /// Encodes the picture as a PNG file: ISO/IEC 15948.
    pub fn to_png(&self) -> Vec<u8> {
        // Writing to memory does not fail, and no screen is too large for a PNG.
        self.encode().unwrap_or_default()
    }

    fn encode(&self) -> io::Result<Vec<u8>> {
        let mut lines = ZlibEncoder::new(Vec::new(), Compression::fast());
        for line in self.rgba.chunks_exact(self.width.max(1) * 4) {
            // Each line starts with its filter type: none.
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

/// Appends a chunk: length, type, data, and a checksum of the last two.
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
