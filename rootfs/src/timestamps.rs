//! Timestamps of an image.

use crate::{Error, Fingerprint};

/// How modification times are stored in an image. The file system's own times, and the access,
/// change and creation times of every entry, are always set to the epoch.
///
/// The default clamps to 1 January 2025: a fresh checkout gives the same image on every
/// machine, and the files of a distribution keep their times, by which Python, for example,
/// matches compiled modules to their sources.
///
/// ```
/// use vmcell_rootfs::{ImageBuilder, Timestamps};
///
/// let builder = ImageBuilder::new().timestamps(Timestamps::AllAt(1_700_000_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timestamps {
    /// Times after this epoch (seconds since 1970) are set to it; earlier ones are kept to the
    /// second.
    ClampTo(u32),
    /// All times are set to this epoch.
    AllAt(u32),
    /// Times are kept to the second, up to 2038. Entries without one have this epoch.
    Keep(u32),
}

impl Default for Timestamps {
    fn default() -> Self {
        Self::ClampTo(Self::DEFAULT_EPOCH)
    }
}

impl Timestamps {
    /// 1 January 2025, 00:00 UTC.
    pub(crate) const DEFAULT_EPOCH: u32 = 1_735_689_600;

    /// Returns the epoch if it is valid. `E2FSPROGS_FAKE_TIME=0` means "not set", and for times
    /// after 2038 not all tools of e2fsprogs 1.47.0 write the upper bits.
    pub(crate) fn epoch(self) -> Result<u32, Error> {
        let (Self::ClampTo(epoch) | Self::AllAt(epoch) | Self::Keep(epoch)) = self;
        match i32::try_from(epoch) {
            Ok(1..) => Ok(epoch),
            _ => Err(Error::Epoch { epoch }),
        }
    }

    /// Returns the modification time to set for an entry; `None` if it is the epoch.
    pub(crate) fn modified(self, entry: Option<i64>) -> Option<u32> {
        let seconds = u32::try_from(entry?.max(0)).unwrap_or(u32::MAX);
        match self {
            Self::ClampTo(epoch) => (seconds < epoch).then_some(seconds),
            Self::AllAt(_) => None,
            Self::Keep(_) => Some(seconds.min(i32::MAX as u32)),
        }
    }

    pub(crate) fn fingerprint(self, inputs: &mut Fingerprint) {
        let (kind, epoch) = match self {
            Self::ClampTo(epoch) => ("clamp to", epoch),
            Self::AllAt(epoch) => ("all at", epoch),
            Self::Keep(epoch) => ("keep", epoch),
        };
        inputs
            .field("timestamps", kind)
            .field("epoch", epoch.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamping_keeps_older_times_and_no_newer_ones() {
        let clamp = Timestamps::ClampTo(1000);
        assert_eq!(clamp.modified(Some(999)), Some(999));
        assert_eq!(clamp.modified(Some(1000)), None);
        assert_eq!(clamp.modified(Some(i64::MAX)), None);
        assert_eq!(clamp.modified(Some(-5)), Some(0));
        assert_eq!(clamp.modified(None), None);
        assert_eq!(Timestamps::AllAt(1000).modified(Some(1)), None);
        let keep = Timestamps::Keep(1000);
        assert_eq!(keep.modified(Some(2000)), Some(2000));
        assert_eq!(keep.modified(Some(i64::MAX)), Some(i32::MAX as u32));
        assert_eq!(keep.modified(None), None);
    }

    #[test]
    fn an_epoch_the_tools_would_ignore_or_cut_is_refused() {
        for epoch in [0, 1 << 31, u32::MAX] {
            assert!(matches!(
                Timestamps::AllAt(epoch).epoch(),
                Err(Error::Epoch { .. })
            ));
        }
        assert_eq!(Timestamps::AllAt(1).epoch().unwrap(), 1);
    }
}
