//! `vmcell ls`: lists a directory of a VM.

use vmcell::files::WalkOptions;

use super::{
    LsArguments,
    listing::{Listing, ListingStyle},
    path::guest_path,
};
use crate::{runtime::block_on, target::Target};

pub(crate) fn ls(arguments: LsArguments) -> anyhow::Result<u8> {
    block_on(async move {
        let target = Target::attach(&arguments.id).await?;
        let path = guest_path(&arguments.path);
        let style = match (arguments.json, arguments.long) {
            (true, _) => ListingStyle::Json(target.as_json()),
            (_, true) => ListingStyle::Long,
            _ => ListingStyle::Names,
        };
        let listing = Listing::of_guest(&target.vm.files(), path, walk(&arguments)).await?;
        listing.print(style).await
    })
}

fn walk(arguments: &LsArguments) -> WalkOptions {
    let deep = arguments.recursive || arguments.glob.is_some();
    let depth = arguments.depth.unwrap_or(if deep { u32::MAX } else { 1 });
    let walk = WalkOptions::new().depth(depth);
    match &arguments.glob {
        Some(pattern) => walk.glob(pattern),
        None => walk,
    }
}
