//! What the fuzz target `state_files` reaches.

use std::path::Path;

use super::manifest::Manifest;

/// Reads the manifest of a snapshot, as it is and with the digest that it should have.
///
/// # Errors
/// What users see.
pub fn read_manifest(json: &[u8]) -> Result<(), String> {
    let path = Path::new("snapshot");
    if let Ok(changed) = serde_json::from_slice::<Manifest>(json) {
        // A fuzzer cannot compute digests.
        let sealed = changed.to_json().expect("it was JSON");
        if let Ok(manifest) = Manifest::from_json(&sealed, path) {
            let _ = manifest.created();
            let again = manifest.to_json().expect("it was JSON");
            assert_eq!(again, sealed, "it changes when it is read and written");
        }
    }
    let read = Manifest::from_json(json, path);
    read.map(drop).map_err(|error| error.to_string())
}
