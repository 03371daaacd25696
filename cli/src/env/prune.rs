//! `vmcell env prune`: removes disk images that nothing needs.

use vmcell_cli::{options::size::human_readable, show::name};
use vmcell_rootfs::catalog::{Catalog, Prune};

use super::{arguments::PruneArguments, info, users::ImageUsers};
use crate::failure::{print_json, report};

pub(super) async fn prune(arguments: &PruneArguments) -> anyhow::Result<u8> {
    let what = match arguments.all {
        true => Prune::Recipes,
        false => Prune::Unnamed,
    };
    let in_use = ImageUsers::find().await?.images();
    let pruned = Catalog::user()?.prune(what, &in_use)?;
    if arguments.json {
        print_json(&info::pruned_as_json(&pruned));
        return Ok(0);
    }
    for image in &pruned.images {
        println!("{}", name::printable(image));
    }
    report(&format!("freed {}", human_readable(pruned.bytes)));
    Ok(0)
}
