use std::{borrow::Cow, os::unix::ffi::OsStrExt, path::Path};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{
    hex::{from_hex, hex},
    name::{JsonName, json_name, path},
};
use crate::{Date, Entry, EntryKind};

/// An [`Entry`] as JSON.
#[derive(Serialize, Deserialize)]
struct EntryRecord<'a> {
    path: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    /// The last component of the path, for readers without a parser of paths.
    #[serde(default)]
    name: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name_bytes: Option<String>,
    #[serde(rename = "type")]
    kind: EntryKind,
    size: u64,
    allocated: u64,
    mode: String,
    /// As `ls -l` prints them.
    #[serde(default)]
    permissions: String,
    uid: u32,
    gid: u32,
    owner: Option<Cow<'a, str>>,
    group: Option<Cow<'a, str>>,
    modified: String,
    links: u32,
    inode: u64,
    target: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_bytes: Option<String>,
    sha256: Option<String>,
}

fn name_of(path: &Path) -> JsonName<'_> {
    json_name(path.as_os_str().as_bytes())
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (path, path_bytes) = name_of(&self.path);
        let (name, name_bytes) = name_of(Path::new(self.name().unwrap_or_default()));
        let target = self.target.as_deref().map(name_of);
        let (target, target_bytes) = target.map_or((None, None), |(text, hex)| (Some(text), hex));
        let record = EntryRecord {
            path,
            path_bytes,
            name,
            name_bytes,
            kind: self.kind,
            size: self.size,
            allocated: self.allocated,
            mode: format!("{:04o}", self.mode),
            permissions: self.permissions(),
            uid: self.uid,
            gid: self.gid,
            owner: self.owner.as_deref().map(Cow::Borrowed),
            group: self.group.as_deref().map(Cow::Borrowed),
            modified: Date::of(self.modified).rfc3339(),
            links: self.links,
            inode: self.inode,
            target,
            target_bytes,
            sha256: self.sha256.as_ref().map(|digest| hex(digest)),
        };
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let record = EntryRecord::deserialize(deserializer)?;
        let digest = |hex: String| {
            let bytes = from_hex(&hex).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
            bytes.ok_or_else(|| D::Error::custom("sha256 is not a digest"))
        };
        let mode = u32::from_str_radix(&record.mode, 8);
        let target = record.target.map(|text| path((text, record.target_bytes)));
        Ok(Self {
            path: path((record.path, record.path_bytes))?,
            kind: record.kind,
            size: record.size,
            allocated: record.allocated,
            mode: mode.map_err(|_| D::Error::custom("mode is not octal"))?,
            uid: record.uid,
            gid: record.gid,
            owner: record.owner.map(Cow::into_owned),
            group: record.group.map(Cow::into_owned),
            modified: Date::parse(&record.modified)
                .ok_or_else(|| D::Error::custom("modified is not a date"))?,
            links: record.links,
            inode: record.inode,
            target: target.transpose()?,
            sha256: record.sha256.map(digest).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsString,
        os::unix::ffi::OsStringExt,
        path::PathBuf,
        time::{Duration, SystemTime},
    };

    use super::*;

    #[test]
    fn an_entry_is_read_again_whatever_its_name() {
        let mut entry = Entry::new("a/schön".into(), EntryKind::CharacterDevice);
        entry.mode = 0o4755;
        entry.modified = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 5);
        entry.owner = Some("root".to_owned());
        entry.sha256 = Some([0xab; 32]);
        let json = serde_json::to_value(&entry).unwrap();
        assert_eq!(json["type"], "character-device");
        assert_eq!(
            (&json["mode"], &json["name"]),
            (&"4755".into(), &"schön".into())
        );
        assert_eq!(json.get("path_bytes"), None);
        assert_eq!(serde_json::from_value::<Entry>(json).unwrap(), entry);

        entry.path = PathBuf::from(OsString::from_vec(b"a/\xff".to_vec()));
        entry.target = Some(PathBuf::from(OsString::from_vec(b"\xfe".to_vec())));
        let json = serde_json::to_value(&entry).unwrap();
        assert_eq!(json["path_bytes"], "612fff");
        assert_eq!(
            (&json["target"], &json["target_bytes"]),
            (&"\u{fffd}".into(), &"fe".into())
        );
        assert_eq!(
            serde_json::from_value::<Entry>(json.clone()).unwrap(),
            entry
        );

        for (key, bad) in [
            ("mode", "9"),
            ("path_bytes", "6"),
            ("sha256", "ab"),
            ("modified", "-"),
        ] {
            let mut json = json.clone();
            json[key] = bad.into();
            assert!(serde_json::from_value::<Entry>(json).is_err(), "{key}");
        }
    }
}
