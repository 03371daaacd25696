use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use crate::port::PublishedPort;

impl Serialize for PublishedPort {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut port = serializer.serialize_struct("PublishedPort", 2)?;
        port.serialize_field("host", &self.host_port())?;
        port.serialize_field("guest", &self.guest_port())?;
        port.end()
    }
}
