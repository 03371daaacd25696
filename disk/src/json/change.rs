use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::{DiskChange, DiskChangeKind, Owner};

impl Serialize for DiskChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = self.kind() == DiskChangeKind::OwnerChanged;
        let owner = |owner: Option<Owner>| owner.map(|owner| [owner.uid, owner.gid]);
        let mut map = serializer.serialize_map(None)?;
        self.file
            .write_json(&mut map, kind.then_some("owner-changed"))?;
        map.serialize_entry("old_owner", &owner(self.old_owner))?;
        map.serialize_entry("new_owner", &owner(self.new_owner))?;
        map.end()
    }
}
