//! `vmcell images`: lists the environments.

use serde_json::json;
use vmcell_cli::{options::size::human_readable, show::Table};
use vmcell_rootfs::{Cache, Environment};

use crate::{arguments::ImagesArguments, failure::print_json};

pub(crate) fn images(arguments: &ImagesArguments) -> anyhow::Result<u8> {
    let cache = Cache::user()?;
    let mut table = Table::new(["NAME", "SIZE", "PATH"]);
    let mut list = Vec::new();
    for environment in Environment::ALL {
        let image = environment.cached(&cache)?;
        let size = image.as_ref().map(|image| image.size);
        let path = image.map(|image| image.path.display().to_string());
        list.push(json!({ "name": environment.name(), "bytes": size, "path": path }));
        table.add([
            environment.name().to_owned(),
            size.map_or("-".to_owned(), human_readable),
            path.unwrap_or("not built yet: the first run builds it".to_owned()),
        ]);
    }
    match arguments.json {
        true => print_json(&json!({ "images": list })),
        false => table.print_to_stdout()?,
    }
    Ok(0)
}
