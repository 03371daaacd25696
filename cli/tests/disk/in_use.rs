//! A disk that another program is writing.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use crate::{program::disk, sample::Sample};

#[test]
fn a_disk_in_use_is_refused_unless_a_torn_look_will_do() {
    let sample = Sample::new();
    let image = sample.image();
    let file = File::open(&image).unwrap();
    flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    let ended = disk(["ls".as_ref(), image.as_os_str()]);
    ended.assert_failed(125, "is in use: stop the VM that uses it, or");
    ended.assert_failed(125, "--torn");
    let ended = disk(["ls".as_ref(), image.as_os_str(), "--json".as_ref()]);
    assert_eq!(ended.json()[0]["error"]["code"], json!("disk-in-use"));
    let ended = disk(["seal".as_ref(), image.as_os_str()]);
    ended.assert_failed(125, "is in use");
    for option in ["--torn", "--in-use"] {
        let look = ["ls".as_ref(), image.as_os_str(), "/src/deep".as_ref()];
        let ended = disk(look.into_iter().chain([option.as_ref()]));
        assert_eq!(ended.printed(), "er\n");
    }
}
