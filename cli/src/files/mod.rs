//! Commands on files of a VM.

mod arguments;
mod baseline;
mod cat;
mod cp;
mod diff;
mod listing;
mod ls;
mod patch;
mod path;
mod pulls;
mod push_digest;
mod pushes;
mod stat;
mod transfer;

pub(crate) use arguments::{
    CatArguments, CpArguments, DiffArguments, LsArguments, PatchArguments, StatArguments,
};
pub(crate) use baseline::store_baseline;
pub(crate) use cat::cat;
pub(crate) use cp::cp;
pub(crate) use diff::{diff, print_changes};
pub(crate) use listing::{Listing, ListingStyle};
pub(crate) use ls::ls;
pub(crate) use patch::{patch, read_patch, report_patch};
pub(crate) use path::{WORKSPACE, guest_path};
pub(crate) use pulls::{PullArgument, Pulls};
pub(crate) use pushes::{PushSource, Pushes};
pub(crate) use stat::stat;
