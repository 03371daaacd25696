//! `vmcell template inspect`: shows one template.

use std::io::Write;

use vmcell::Template;
use vmcell_cli::show::SafeStdout;

use super::{arguments::InspectArguments, info, remove::no_such_template};
use crate::failure::print_json;

pub(super) async fn inspect(arguments: &InspectArguments) -> anyhow::Result<u8> {
    // `Template::find` would count as a use of it.
    let templates = Template::list().await?;
    let template = templates
        .into_iter()
        .find(|template| template.name == arguments.name)
        .ok_or_else(|| no_such_template(&[&arguments.name]))?;
    if arguments.json {
        print_json(&info::as_json(&template));
        return Ok(0);
    }
    let mut out = SafeStdout::new();
    let properties = info::properties(&template);
    let mut properties = properties.iter();
    let written = properties.try_for_each(|(key, value)| writeln!(out, "{key:10} {value}"));
    out.finish(written)
}
