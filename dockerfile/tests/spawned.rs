//! Builds in a program's own tasks and folders.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use vmcell_dockerfile::{Build, BuildError};
use vmcell_rootfs::{Cache, catalog::Catalog};

#[tokio::test]
async fn a_build_can_be_spawned() {
    let building = tokio::spawn(async {
        let plan = Build::new("no/such/Dockerfile").plan()?;
        let catalog = Catalog::of(Cache::at("no/such/folder"));
        plan.run(&catalog, "tool", &BTreeMap::new(), async |_| {})
            .await
    });
    let error = building.await.expect("it does not panic").map(|_| ());
    assert!(matches!(error, Err(BuildError::Read { .. })), "{error:?}");
}

#[tokio::test]
async fn a_name_that_cannot_be_given_is_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Dockerfile");
    std::fs::write(&file, "FROM scratch\nRUN never").unwrap();
    let cache = folder.path().join("cache");
    let catalog = Catalog::of(Cache::at(&cache));
    for name in ["../tool", "Tool", "debian", ""] {
        let plan = Build::new(&file).plan().unwrap();
        let refused = plan
            .run(&catalog, name, &BTreeMap::new(), async |_| {})
            .await;
        let error = refused.unwrap_err();
        assert!(matches!(error, BuildError::Store(_)), "{error:?}");
        assert!(!cache.exists());
    }
}
