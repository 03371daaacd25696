//! Command-line options that both programs share.

pub mod copy_target;
pub mod manual;
pub mod size;
pub mod timestamp;

mod path_filter;

pub use path_filter::PathFilter;
