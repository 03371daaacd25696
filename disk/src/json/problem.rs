use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::write_path;
use crate::{DiskError, DiskProblem};

/// Its code and its message.
impl Serialize for DiskError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", self.code())?;
        map.serialize_entry("message", &self.to_string())?;
        map.end()
    }
}

impl Serialize for DiskProblem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_path(&mut map, &self.path)?;
        map.serialize_entry("code", self.error.code())?;
        map.serialize_entry("message", &self.error.to_string())?;
        map.end()
    }
}
