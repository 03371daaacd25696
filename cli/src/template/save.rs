//! `vmcell template save`: saves a running VM as a template.

use std::io::{self, IsTerminal};

use vmcell::{Template, template::TemplateInfo};
use vmcell_cli::{options::size::human_readable, show::Spinner, signals::Signals};

use super::{arguments::SaveArguments, info, make::check_name};
use crate::{
    failure::{print_json, report},
    target,
};

pub(super) async fn save(arguments: &SaveArguments) -> anyhow::Result<u8> {
    check_name(&arguments.name)?;
    let mut signals = Signals::new()?;
    let message = format!("saving {}", arguments.id);
    let taking = Spinner::show_during(message, take(arguments));
    let template = tokio::select! {
        taken = taking => taken?,
        code = signals.next() => return Ok(code),
    };
    if arguments.json {
        print_json(&info::as_json(&template));
    } else if io::stderr().is_terminal() {
        let (name, size) = (&template.name, human_readable(template.bytes));
        report(&format!("saved the template {name}: {size}"));
    }
    Ok(0)
}

async fn take(arguments: &SaveArguments) -> anyhow::Result<TemplateInfo> {
    let vm = target::attach(&arguments.id).await?;
    let options = arguments.options.to_options();
    let template = Template::save(&vm, &arguments.name, options).await?;
    arguments.options.wait_for_end(&vm).await?;
    Ok(template)
}
