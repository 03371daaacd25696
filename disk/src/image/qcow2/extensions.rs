/// Where the name of a backing file's format is.
pub(super) const BACKING_FORMAT: u32 = 0xe279_2aca;
/// What ends the extensions.
pub(super) const END: u32 = 0;
/// Where names of features are.
const FEATURE_NAMES: u32 = 0x6803_f857;
/// The kind of features without which an image cannot be read.
const INCOMPATIBLE: u8 = 0;

/// What follows the fixed fields of a header, as far as it matters.
#[derive(Debug, Default)]
pub(super) struct Extensions<'a> {
    backing_format: Option<&'a [u8]>,
    feature_names: &'a [u8],
}

impl<'a> Extensions<'a> {
    /// Each extension is a type, a length and as many bytes, filled up to a
    /// multiple of 8. Type 0 ends them.
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

    /// The format of the backing file.
    pub(super) fn backing_format(&self) -> Option<String> {
        self.backing_format
            .map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// What the image calls an incompatible feature: each entry is a kind, a bit
    /// and a name filled up with zeroes.
    pub(super) fn feature_name(&self, bit: u32) -> Option<String> {
        self.feature_names
            .chunks_exact(48)
            .filter_map(|entry| entry.split_first_chunk::<2>())
            .find(|([kind, number], _)| *kind == INCOMPATIBLE && u32::from(*number) == bit)
            .and_then(|(_, name)| name.split(|byte| *byte == 0).next())
            .map(|name| String::from_utf8_lossy(name).into_owned())
    }
}
