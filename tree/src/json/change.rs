use std::os::unix::ffi::OsStrExt;

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{hex::hex, name::write_name};
use crate::diff::{FileDiff, ManifestEntry, ManifestKind, PatchDetail};

impl FileDiff {
    /// Writes its keys to a JSON object, with another name of the kind of change
    /// if there is one.
    ///
    /// # Errors
    /// Those of the map.
    pub fn write_json<M: SerializeMap>(
        &self,
        map: &mut M,
        kind: Option<&str>,
    ) -> Result<(), M::Error> {
        let change = self.change();
        let patch = match self.detail() {
            PatchDetail::Full => Some(String::from_utf8_lossy(self.patch())),
            _ => None,
        };
        write_name(map, "path", change.path.as_os_str().as_bytes())?;
        map.serialize_entry("change", kind.unwrap_or(change.kind().name()))?;
        map.serialize_entry("old", &change.old)?;
        map.serialize_entry("new", &change.new)?;
        map.serialize_entry("patch", &patch)
    }
}

impl Serialize for FileDiff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write_json(&mut map, None)?;
        map.end()
    }
}

impl Serialize for ManifestEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("mode", &format!("{:04o}", self.mode))?;
        let kind = match &self.kind {
            ManifestKind::File { size, sha256 } => {
                map.serialize_entry("size", size)?;
                map.serialize_entry("sha256", &hex(sha256))?;
                "file"
            }
            ManifestKind::Directory => "directory",
            ManifestKind::Symlink { target } => {
                write_name(&mut map, "target", target)?;
                "symlink"
            }
            ManifestKind::Other => "other",
        };
        map.serialize_entry("type", kind)?;
        map.end()
    }
}
