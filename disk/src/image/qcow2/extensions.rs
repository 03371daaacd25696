/// Header extension with the format of the backing file.
pub(super) const BACKING_FORMAT: u32 = 0xe279_2aca;
/// The end of the header extensions.
pub(super) const END: u32 = 0;
/// Header extension with the names of features.
const FEATURE_NAMES: u32 = 0x6803_f857;
/// Feature type of incompatible features: without support for these an image
/// cannot be read.
const INCOMPATIBLE: u8 = 0;

/// The header extensions that matter to a reader.
#[derive(Debug, Default)]
pub(super) struct Extensions<'a> {
    backing_format: Option<&'a [u8]>,
    feature_names: &'a [u8],
}

impl<'a> Extensions<'a> {
    /// Parses the extensions. Each has a type, a length and data, padded to a
    /// multiple of 8 bytes. Type 0 ends the list.
    pub(super) fn parse(mut bytes: &'a [u8]) -> Option<Self> {
        let mut found = Self::default();
        while let Some((head, rest)) = bytes.split_first_chunk::<8>() {
            let [t0, t1, t2, t3, l0, l1, l2, l3] = *head;
            let kind = u32::from_be_bytes([t0, t1, t2, t3]);
            let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
            let data = rest.get(..length)?;
            match kind {
                END => break,
                BACKING_FORMAT => found.backing_format = Some(data),
                FEATURE_NAMES => found.feature_names = data,
                _ => {}
            }
            bytes = rest.get(length.next_multiple_of(8)..).unwrap_or_default();
        }
        Some(found)
    }

    /// Returns the format of the backing file.
    pub(super) fn backing_format(&self) -> Option<String> {
        self.backing_format
            .map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// Returns the image's own name for an incompatible feature. Each entry of
    /// the table is a type, a bit number and a zero-padded name.
    pub(super) fn feature_name(&self, bit: u32) -> Option<String> {
        self.feature_names
            .chunks_exact(48)
            .filter_map(|entry| entry.split_first_chunk::<2>())
            .find(|([kind, number], _)| *kind == INCOMPATIBLE && u32::from(*number) == bit)
            .and_then(|(_, name)| name.split(|byte| *byte == 0).next())
            .map(|name| String::from_utf8_lossy(name).into_owned())
    }
}
