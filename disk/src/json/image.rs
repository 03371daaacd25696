use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::write_path;
use crate::image::{Layer, partition::Partition};

impl Serialize for Layer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_path(&mut map, &self.path)?;
        map.serialize_entry("format", &self.format.to_string())?;
        map.serialize_entry("size", &self.size)?;
        map.serialize_entry("allocated", &self.allocated)?;
        map.serialize_entry("sealed", &self.sealed)?;
        map.serialize_entry("corrupt", &self.corrupt)?;
        map.end()
    }
}

impl Serialize for Partition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("index", &self.index)?;
        map.serialize_entry("start", &self.start)?;
        map.serialize_entry("length", &self.length)?;
        map.serialize_entry("type", &self.kind.to_string())?;
        map.serialize_entry("ext", &self.has_ext_fs)?;
        map.end()
    }
}
