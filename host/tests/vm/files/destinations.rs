//! Destinations of trees on the host.

use vmcell::tree::ArchiveFormat;

use crate::{
    pairs::{Pairs, Way},
    start,
};

#[tokio::test]
async fn whatever_is_pulled_wherever_nothing_outside_of_the_destination_changes() {
    let vm = start().await;
    for way in [Way::Exact, Way::AllowSymlink, Way::Archive] {
        let pairs = Pairs::new(way);
        let (files, top) = (vm.files().at("/workspace"), format!("{way:?}"));
        files.push(pairs.grow(), &top).run().await.unwrap();
        for pair in pairs.all() {
            let from = format!("{top}/{}", pair.coming.name());
            let to = &pair.destination;
            let pull = match way {
                Way::Archive => files.pull_archive(from, to, ArchiveFormat::Tar),
                Way::AllowSymlink => files.pull(from, to).allow_symlink(),
                _ => files.pull(from, to),
            };
            let pulled = pull.run().await.map(drop);
            pairs.check(&pair, pulled.map_err(|error| error.to_string()));
        }
    }
}
