//! `vmcell env inspect`: shows one environment.

use std::io::Write;

use vmcell_cli::show::SafeStdout;
use vmcell_rootfs::{Error, catalog::Catalog};

use super::{arguments::InspectArguments, info, users::ImageUsers};
use crate::failure::print_json;

pub(super) async fn inspect(arguments: &InspectArguments) -> anyhow::Result<u8> {
    let entry = Catalog::user()?.find(&arguments.name)?;
    let entry = entry.ok_or_else(|| Error::NoEnvironment {
        name: arguments.name.clone(),
    })?;
    let users = ImageUsers::find().await?;
    match arguments.json {
        true => print_json(&info::as_json(&entry, &users)),
        false => {
            let mut out = SafeStdout::new();
            let properties = info::properties(&entry, &users);
            let mut properties = properties.iter();
            let written = properties.try_for_each(|(key, value)| writeln!(out, "{key:17} {value}"));
            return out.finish(written);
        }
    }
    Ok(0)
}
