//! `vmcell template`: VMs that are prepared once and started many times.

mod arguments;
mod info;
mod inspect;
mod list;
mod make;
mod preparation;
mod prune;
mod remove;
mod save;

pub(crate) use arguments::TemplateArguments;

use arguments::TemplateCommand;

use crate::runtime::block_on;

pub(crate) fn template(arguments: TemplateArguments) -> anyhow::Result<u8> {
    match arguments.command {
        TemplateCommand::Make(arguments) => make::make(*arguments),
        TemplateCommand::Save(arguments) => block_on(save::save(&arguments)),
        TemplateCommand::Ls(arguments) => block_on(list::list(&arguments)),
        TemplateCommand::Inspect(arguments) => block_on(inspect::inspect(&arguments)),
        TemplateCommand::Rm(arguments) => block_on(remove::remove(&arguments)),
        TemplateCommand::Prune(arguments) => block_on(prune::prune(&arguments)),
    }
}
