//! File operations on real files.

mod confinement;
mod edit;
mod full_disk;
mod links;
mod manage;
mod read;
mod remove;
mod test_env;
mod write;
