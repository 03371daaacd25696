use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::Error;

/// Its code and its message, and the cause if a command has ended.
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", self.code())?;
        map.serialize_entry("message", &self.to_string())?;
        if let Some(cause) = self.cause() {
            map.serialize_entry("cause", cause.name())?;
        }
        map.end()
    }
}
