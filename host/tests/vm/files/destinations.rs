//! Destinations of trees on the host.

use vmcell::tree::ArchiveFormat;

use crate::{
    destination_cases::{Cases, Method},
    start,
};

#[tokio::test]
async fn whatever_is_pulled_wherever_nothing_outside_of_the_destination_changes() {
    let vm = start().await;
    for method in [Method::Exact, Method::AllowSymlink, Method::Archive] {
        let cases = Cases::new(method);
        let (files, top) = (vm.files().at("/workspace"), format!("{method:?}"));
        files
            .push(cases.create_sources(), &top)
            .run()
            .await
            .unwrap();
        for case in cases.all() {
            let from = format!("{top}/{}", case.incoming.name());
            let to = &case.destination;
            let pull = match method {
                Method::Archive => files.pull_archive(from, to, ArchiveFormat::Tar),
                Method::AllowSymlink => files.pull(from, to).allow_symlink(),
                _ => files.pull(from, to),
            };
            let pulled = pull.run().await.map(drop);
            cases.check(&case, pulled.map_err(|error| error.to_string()));
        }
    }
}
