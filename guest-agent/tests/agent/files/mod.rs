//! Work on files, on real ones.

mod confinement;
mod edit;
mod full_disk;
mod links;
mod manage;
mod read;
mod remove;
mod site;
mod write;
