//! `vmcell env pull`: makes an environment from an image of a registry.

use vmcell_rootfs::{
    Cache,
    catalog::Catalog,
    registry::{self, PullOptions},
};

use super::{arguments::PullArguments, info};
use crate::environment::{BuildBar, PullBar};

pub(super) async fn pull(arguments: PullArguments) -> anyhow::Result<u8> {
    let mut options = PullOptions::default().plain_http(arguments.plain_http);
    if let Some(mirror) = arguments.mirror {
        options = options.mirror(mirror);
    }
    let name = arguments.name.as_deref();
    let name = name.unwrap_or(arguments.image.short_name());
    let cache = Cache::user()?;
    let bar = PullBar::new();
    let image = registry::pull(&cache, &arguments.image, options, |bytes, all| {
        bar.show(bytes, all);
    });
    bar.finish();
    let image = image?;
    let bar = BuildBar::new();
    let entry = Catalog::of(cache).import(name, &image, |progress| bar.show(progress));
    bar.finish();
    info::print_new(&entry?, arguments.json).await
}
