use serde::{Serialize, Serializer, ser::SerializeMap as _};
use vmcell_tree::json::write_name;

use super::write_path;
use crate::{DirectoryUsage, GrepMatch, MatchedLine};

impl Serialize for GrepMatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Line(line) => line.serialize(serializer),
            Self::Binary { path } => {
                let mut map = serializer.serialize_map(None)?;
                write_path(&mut map, path)?;
                map.serialize_entry("binary", &true)?;
                map.end()
            }
        }
    }
}

impl Serialize for MatchedLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_path(&mut map, &self.path)?;
        map.serialize_entry("line", &self.number)?;
        map.serialize_entry("offset", &self.offset)?;
        map.serialize_entry("matched", &[self.matched.start, self.matched.end])?;
        map.serialize_entry("cut", &self.is_truncated)?;
        map.serialize_entry("binary", &false)?;
        write_name(&mut map, "text", &self.text)?;
        map.end()
    }
}

impl Serialize for DirectoryUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_path(&mut map, &self.path)?;
        map.serialize_entry("entries", &self.usage.entries)?;
        map.serialize_entry("directories", &self.usage.directories)?;
        map.serialize_entry("bytes", &self.usage.bytes)?;
        map.serialize_entry("allocated", &self.usage.allocated)?;
        map.serialize_entry("problems", &self.usage.problems)?;
        map.end()
    }
}
