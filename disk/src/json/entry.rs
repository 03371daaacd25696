use serde::{Serialize, Serializer};
use vmcell_tree::{Date, Entry};

use crate::EntryDetails;

/// An entry with what only a disk records of it.
#[derive(Serialize)]
struct DetailsRecord<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    accessed: String,
    changed: String,
    created: Option<String>,
    device: Option<(u32, u32)>,
    flags: u32,
    encrypted: bool,
}

/// Without its extended attributes, which are to be read with their values.
impl Serialize for EntryDetails {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let date = |time| Date::of(time).rfc3339();
        let record = DetailsRecord {
            entry: &self.entry,
            accessed: date(self.accessed),
            changed: date(self.changed),
            created: self.created.map(date),
            device: self.device,
            flags: self.flags,
            encrypted: self.is_encrypted,
        };
        record.serialize(serializer)
    }
}
