use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};

use super::picture::Picture;

impl Picture {
    /// Encodes the picture as a PNG file: ISO/IEC 15948.
    pub fn to_png(&self) -> Vec<u8> {
        // Writing to memory does not fail, and no screen is too large for a PNG.
        self.encode().unwrap_or_default()
    }

    fn encode(&self) -> Result<Vec<u8>, EncodingError> {
        let side = |length| u32::try_from(length).unwrap_or(u32::MAX);
        let mut png = Vec::new();
        let mut encoder = Encoder::new(&mut png, side(self.width), side(self.height));
        encoder.set_color(ColorType::Rgba);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Fast);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.rgba)?;
        writer.finish()?;
        Ok(png)
    }
}
