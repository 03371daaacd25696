//! Files of a VM: in and out, looked at, patched and compared.

mod arguments;
mod baseline;
mod cat;
mod colour;
mod cp;
mod date;
mod diff;
mod entry;
mod ls;
mod name;
mod page;
mod patch;
mod place;
mod progress;
mod pulls;
mod pushes;
mod stat;
mod summary;
mod transfer;

pub(crate) use arguments::{
    CatArguments, CpArguments, DiffArguments, LsArguments, PatchArguments, StatArguments,
};
pub(crate) use baseline::keep_baseline;
pub(crate) use cat::cat;
pub(crate) use cp::cp;
pub(crate) use diff::diff;
pub(crate) use ls::ls;
pub(crate) use patch::patch;
pub(crate) use place::WORKSPACE;
pub(crate) use pulls::{PullArgument, Pulls};
pub(crate) use pushes::Pushes;
pub(crate) use stat::stat;
