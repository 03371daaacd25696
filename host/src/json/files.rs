use std::{os::unix::ffi::OsStrExt as _, path::Path};

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use vmcell_tree::json::write_name;

use crate::files::{AppliedPatch, FileEvent, PatchedFile, WalkProblem};

impl Serialize for PatchedFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("change", &self.kind)?;
        write_name(&mut map, "path", self.path.as_os_str().as_bytes())?;
        map.end()
    }
}

impl Serialize for AppliedPatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let omitted: Vec<_> = self.omitted.iter().map(|path| PathRecord(path)).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("files", &self.files)?;
        map.serialize_entry("omitted", &omitted)?;
        map.end()
    }
}

/// An object with a path only.
struct PathRecord<'a>(&'a Path);

impl Serialize for PathRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_name(&mut map, "path", self.0.as_os_str().as_bytes())?;
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
