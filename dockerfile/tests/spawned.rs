//! A build can be a task of its own.

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
