use std::{
    fmt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::{SnapshotError, file_record::FileRecord};
use crate::{
    acceleration::Acceleration,
    backend::{SavedPart, VmmRecord},
    link::LinkKind,
    printable_name,
    sparse::Digest,
};

/// The format of the folder. Another one cannot be read.
pub(super) const FORMAT: u64 = 1;

/// The name of the manifest in the folder.
pub(super) const MANIFEST: &str = "manifest.json";

/// The size of the largest manifest that is read.
pub(super) const MAX_MANIFEST: u64 = 1 << 20;

/// What a snapshot contains, and what it needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u64,
    /// In seconds since 1970.
    pub(super) created: u64,
    pub(super) guest: GuestRecord,
    pub(super) vmm: VmmRecord,
    pub(super) disk_size: u64,
    /// The image below the layers of the disk.
    pub(super) image: Option<FileRecord>,
    pub(super) parts: Vec<PartRecord>,
    /// The digest of this manifest with zeros in its place.
    digest: String,
}

/// What is known about the VM itself.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GuestRecord {
    pub(crate) backend: String,
    #[serde(with = "acceleration")]
    pub(crate) acceleration: Acceleration,
    pub(crate) vcpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) kernel: PathBuf,
    pub(crate) agent: AgentRecord,
    /// What the agent listens on. A record without it says serial.
    #[serde(
        with = "link",
        default = "link::serial",
        skip_serializing_if = "link::is_serial"
    )]
    pub(crate) link: LinkKind,
    /// The identity that the agent has until it gets a new one.
    #[serde(with = "bytes")]
    pub(crate) boot_id: [u8; 16],
    #[serde(with = "bytes")]
    pub(crate) reset_key: [u8; 16],
    /// What it was made of, if it is a template.
    pub(crate) template: Option<String>,
}

/// Omits the key, which is a secret.
impl fmt::Debug for GuestRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestRecord")
            .field("backend", &self.backend)
            .field("vcpus", &self.vcpus)
            .field("memory_mib", &self.memory_mib)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentRecord {
    pub(crate) build: String,
    pub(crate) sha256: Option<Digest>,
}

/// A file of the folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartRecord {
    #[serde(flatten)]
    pub(super) part: SavedPart,
    /// Its size when it is not compressed.
    pub(super) size: u64,
    /// The digest of its packed form.
    pub(super) sha256: Digest,
    pub(super) is_compressed: bool,
}

impl Manifest {
    pub(super) fn new(
        guest: GuestRecord,
        vmm: VmmRecord,
        disk_size: u64,
        image: Option<FileRecord>,
        parts: Vec<PartRecord>,
    ) -> Self {
        let now = std::time::UNIX_EPOCH.elapsed();
        Self {
            format: FORMAT,
            created: now.map_or(0, |time| time.as_secs()),
            guest,
            vmm,
            disk_size,
            image,
            parts,
            digest: String::new(),
        }
    }

    /// Returns when it was made.
    pub(super) fn created(&self) -> SystemTime {
        time_of(self.created)
    }

    pub(super) fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut manifest = self.clone();
        manifest.digest = self.own_digest()?;
        let mut json = serde_json::to_vec_pretty(&manifest)?;
        json.push(b'\n');
        Ok(json)
    }

    /// Reads a manifest, and checks that it is as it was written.
    pub(super) fn from_json(json: &[u8], path: &Path) -> Result<Self, SnapshotError> {
        #[derive(Deserialize)]
        struct Format {
            format: u64,
        }
        let damaged = |error: serde_json::Error| SnapshotError::Damaged {
            path: path.to_owned(),
            // It quotes names of the file, whatever those have.
            reason: format!(
                "its manifest cannot be read: {}",
                printable_name(error.to_string().as_bytes())
            ),
        };
        // First, because another format may have other fields.
        let Format { format } = serde_json::from_slice(json).map_err(damaged)?;
        if format != FORMAT {
            return Err(SnapshotError::Format {
                path: path.to_owned(),
                format,
                supported: FORMAT,
            });
        }
        let manifest: Self = serde_json::from_slice(json).map_err(damaged)?;
        if manifest.own_digest().map_err(damaged)? != manifest.digest {
            return Err(SnapshotError::Damaged {
                path: path.to_owned(),
                reason: "its manifest was changed".to_owned(),
            });
        }
        Ok(manifest)
    }

    fn own_digest(&self) -> Result<String, serde_json::Error> {
        let mut manifest = self.clone();
        manifest.digest = String::new();
        let json = serde_json::to_vec(&manifest)?;
        Ok(Digest::of_bytes(&json).to_string())
    }
}

/// Returns the time that is so many seconds after 1970.
fn time_of(seconds: u64) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    // A time that this system cannot have is as good as none.
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

mod acceleration {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::acceleration::Acceleration;

    pub(super) fn serialize<S: Serializer>(
        acceleration: &Acceleration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(acceleration)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Acceleration, D::Error> {
        let name = String::deserialize(deserializer)?;
        let all = [Acceleration::Kvm, Acceleration::Tcg];
        let named = all.into_iter().find(|it| it.to_string() == name);
        named.ok_or_else(|| de::Error::custom("no such acceleration"))
    }
}

/// The name of a kind of link.
mod link {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::link::LinkKind;

    pub(super) fn serial() -> LinkKind {
        LinkKind::Serial
    }

    pub(super) fn is_serial(link: &LinkKind) -> bool {
        *link == LinkKind::Serial
    }

    pub(super) fn serialize<S: Serializer>(
        link: &LinkKind,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(link)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<LinkKind, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(de::Error::custom)
    }
}

/// Bytes as hexadecimal digits.
mod bytes {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::hex;

    pub(super) fn serialize<S: Serializer>(
        bytes: &[u8; 16],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u8; 16], D::Error> {
        let text = String::deserialize(deserializer)?;
        hex::decode(&text).ok_or_else(|| de::Error::custom("32 hexadecimal digits are expected"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_of_a_time_that_no_clock_has_can_be_listed() {
        assert_eq!(time_of(u64::MAX), SystemTime::UNIX_EPOCH);
        assert!(time_of(1_795_000_000) > SystemTime::UNIX_EPOCH);
    }
}
