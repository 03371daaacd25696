use serde::{Serialize, Serializer, ser::SerializeMap};

use super::name::write_name;
use crate::transfer::SkippedEntry;

impl Serialize for SkippedEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_name(&mut map, "path", &self.path)?;
        map.serialize_entry("reason", &self.reason)?;
        map.end()
    }
}
