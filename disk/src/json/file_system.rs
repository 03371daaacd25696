use serde::{Serialize, Serializer, ser::SerializeMap as _};
use vmcell_tree::{Date, json::write_name};

use crate::{
    entry::system_time,
    ext4::{Attribute, Info, RecordedError, Timestamp},
};

fn date(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| Date::of(system_time(time)).rfc3339())
}

impl Serialize for Info {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_name(&mut map, "label", &self.label)?;
        map.serialize_entry("uuid", &self.uuid_text())?;
        map.serialize_entry("features", &self.features)?;
        map.serialize_entry("block_size", &self.block_size)?;
        map.serialize_entry("blocks", &self.blocks)?;
        map.serialize_entry("free_blocks", &self.free_blocks)?;
        map.serialize_entry("reserved_blocks", &self.reserved_blocks)?;
        map.serialize_entry("inodes", &self.inodes)?;
        map.serialize_entry("free_inodes", &self.free_inodes)?;
        map.serialize_entry("inode_size", &self.inode_size)?;
        map.serialize_entry("created", &date(self.created))?;
        map.serialize_entry("mounted", &date(self.mounted))?;
        write_name(&mut map, "mounted_at", &self.mounted_at)?;
        map.serialize_entry("written", &date(self.written))?;
        map.serialize_entry("checked", &date(self.checked))?;
        map.serialize_entry("mounts", &self.mounts)?;
        map.serialize_entry("clean", &self.clean)?;
        map.serialize_entry("in_use", &self.in_use)?;
        map.serialize_entry("journal", &self.journal.to_string())?;
        map.serialize_entry("has_errors", &self.has_errors)?;
        map.serialize_entry("error_count", &self.error_count)?;
        map.serialize_entry("first_error", &self.first_error)?;
        map.serialize_entry("last_error", &self.last_error)?;
        map.end()
    }
}

impl Serialize for RecordedError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("time", &date(self.time))?;
        map.serialize_entry("inode", &self.inode)?;
        map.serialize_entry("block", &self.block)?;
        map.serialize_entry("line", &self.line)?;
        write_name(&mut map, "function", &self.function)?;
        map.end()
    }
}

impl Serialize for Attribute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_name(&mut map, "name", &self.name)?;
        write_name(&mut map, "value", &self.value)?;
        map.end()
    }
}
