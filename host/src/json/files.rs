use std::os::unix::ffi::OsStrExt as _;

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use vmcell_tree::json::write_name;

use crate::files::{FileEvent, PatchedFile, WalkProblem};

impl Serialize for PatchedFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("change", &self.kind)?;
        write_name(&mut map, "path", self.path.as_os_str().as_bytes())?;
        map.end()
    }
}

impl Serialize for FileEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind)?;
        write_name(&mut map, "path", self.path.as_os_str().as_bytes())?;
        map.end()
    }
}

/// As text for people.
impl Serialize for WalkProblem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.failure)
    }
}
